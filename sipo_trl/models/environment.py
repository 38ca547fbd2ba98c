"""Reading the description of a network off an environment's specs."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from tensordict import NestedKey
from tensordict.utils import unravel_key
from torchrl.data import (
    Binary,
    Bounded,
    Categorical,
    Composite,
    MultiCategorical,
    MultiOneHot,
    OneHot,
    TensorSpec,
    Unbounded,
)
from torchrl.envs import EnvBase

from sipo_trl.models.description import Action, Observation, Scope, as_key


class EnvironmentReader:
    """What a network has to know about an environment.

    Args:
        env: a TorchRL environment with one action (of one agent or of one group of agents), or its
            ``specs``.

    Attributes:
        action_key: the key of the action.
        group: the path of the group in which the agents stand; empty for a root action.
        agents: number of agents in that group, or ``None`` if it has no agent dimension.

    Example:
        >>> from torchrl.testing.mocking_classes import ContinuousActionVecMockEnv
        >>> environment = EnvironmentReader(ContinuousActionVecMockEnv())
        >>> environment.action().kind, environment.agents
        ('continuous', None)
    """

    def __init__(self, env: EnvBase | Composite) -> None:
        specs = env.specs if isinstance(env, EnvBase) else env
        self._observations: Composite = specs["output_spec", "full_observation_spec"]
        self._actions: Composite = specs["input_spec", "full_action_spec"]
        self._batch_dims = specs.ndim
        keys = list(self._actions.keys(True, True))
        if len(keys) != 1:
            raise ValueError(
                f"The environment has the actions {keys}, but one network decides one action: put "
                "all agents into one group, with equal specs."
            )
        self.action_key: NestedKey = keys[0]
        self.group: tuple[str, ...] = () if isinstance(keys[0], str) else keys[0][:-1]
        group_shape = self._actions[self.group].shape[self._batch_dims :] if self.group else ()
        self.agents: int | None = group_shape[0] if group_shape else None

    def in_group(self, name: str) -> NestedKey:
        """The key of an entry beside the action."""
        return unravel_key((*self.group, name))

    def has(self, key: NestedKey) -> bool:
        """Whether the environment gives this observation."""
        return key in self._observations.keys(True, True)

    def mask_key(self) -> NestedKey | None:
        """The key of the action mask, if ``action_mask`` stands beside the action."""
        key = self.in_group("action_mask")
        if not self.has(key):
            return None
        if self._observations[key].dtype != torch.bool:
            raise ValueError(
                f"Action mask {key!r} has dtype {self._observations[key].dtype}, but torch.bool is "
                "needed: convert it in the environment, for example with DTypeCastTransform."
            )
        return key

    def observations(
        self, keys: Sequence[NestedKey] | None, *, joint: bool = False
    ) -> list[Observation]:
        """Describe observations.

        Args:
            keys: which; by default ``observation``, or else ``pixels``, beside the action.
            joint: whether each agent sees the observations of all agents.
        """
        if keys is None:
            names = map(self.in_group, ("observation", "pixels"))
            keys = [next(filter(self.has, names), self.in_group("observation"))]
        return [self._observation(as_key(key), joint=joint) for key in keys]

    def _observation(self, key: NestedKey, *, joint: bool) -> Observation:
        if not self.has(key):
            raise ValueError(
                f"The environment has no observation {key!r}, only "
                f"{list(self._observations.keys(True, True))}: name some of these as "
                "observation_keys."
            )
        path = (key,) if isinstance(key, str) else key
        own = self.agents is not None and path[: len(self.group)] == self.group
        scope: Scope = "root" if not own else "joint" if joint else "agent"
        shape = self._observations[key].shape[self._batch_dims + own :]
        return Observation(key=key, shape=shape, scope=scope)

    def action(self) -> Action:
        """Describe the action."""
        spec = self._actions[self.action_key]
        event_dims = spec.ndim - self._batch_dims - (self.agents is not None)
        match spec:
            case MultiOneHot() | Binary():
                pass
            case OneHot() if event_dims == 1:
                return Action(key=self.action_key, kind="one_hot", size=spec.space.n)
            case Categorical() if event_dims == 0 and (size := self._choices(spec)):
                return Action(key=self.action_key, kind="categorical", size=size)
            case Bounded() | Unbounded() if event_dims == 1 and spec.dtype.is_floating_point:
                return self._continuous(spec)
        raise ValueError(
            f"Action {self.action_key!r} has the unsupported spec {spec}: give the environment one "
            "continuous vector, one categorical choice or one one-hot vector (per agent)."
        )

    def _choices(self, spec: Categorical) -> int | None:
        """Number of choices, or ``None`` if they differ between agents."""
        if not isinstance(spec, MultiCategorical):
            return spec.space.n
        sizes = set(spec.nvec.flatten().tolist())
        return sizes.pop() if len(sizes) == 1 else None

    def _continuous(self, spec: TensorSpec) -> Action:
        one = (0,) * self._batch_dims
        low, high = spec.space.low[one], spec.space.high[one]
        action = Action(key=self.action_key, kind="continuous", size=spec.shape[-1])
        # Unbounded specs hold the dtype's extremes, whose difference overflows.
        if torch.isfinite(high - low).all():
            action.low, action.high = low.tolist(), high.tolist()
        return action
