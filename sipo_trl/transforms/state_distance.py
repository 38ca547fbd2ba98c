"""State distances as intrinsic rewards."""

from collections.abc import Sequence

import torch
from tensordict import TensorDictBase
from tensordict.nn import dispatch
from tensordict.utils import NestedKey
from torch import Tensor
from torchrl.data import Composite, Unbounded
from torchrl.envs import Transform

from sipo_trl.archive import Archive
from sipo_trl.measures import RBFMeasure, StateDistanceMeasure


class StateDistanceReward(Transform):
    """Appends one intrinsic reward per archived policy: how far a state is from theirs.

    A transition's reward is the distance of the state that it leads to, so the transform reads
    ``("next", "diversity_state")`` and writes ``("next", "intrinsic_reward")`` [*, J]; a measure of
    states and actions reads both at the transition's start. It can stand

    - in an environment, before or after batching (a reset is no step and earns nothing);
    - as a collector's ``postproc`` or in a replay buffer, where all states of a batch [B, T] are
      measured at once, which is much the fastest;
    - in a ``Compose`` or a module, on plain data without a ``"next"``.

    With an empty archive the reward has no entries [*, 0] and costs nothing.

    Args:
        measure: the distance; an :class:`~sipo_trl.archive.Archive` stands for the RBF measure
            with its defaults.
        in_keys: where the states are; a second key, if given, is where the actions are.
        out_keys: where the rewards go.

    Keyword Args:
        weight: if given, the rewards are also added, with this weight (one for all or one per
            policy [J]), to ``reward_key``. That is all that a pipeline with a single reward needs;
            a tensor that somebody else updates, such as multipliers, is read anew each time.
        reward_key: the task's reward [*, 1], read and written only with a ``weight``; if it is one
            per agent and the states are a team's, each agent gets the team's.
        done_key: end of an episode, read by measures that count final states only.
        state_ndim: number of dimensions of one state: 1 for vectors, 3 for images, 2 for a team's
            states, [agents, features], which are to be measured as one.

    Examples:
        >>> from torchrl.envs import GymEnv, TransformedEnv
        >>> references = [torch.randn(100, 4), torch.randn(50, 4)]  # two earlier policies' states
        >>> env = TransformedEnv(
        ...     GymEnv("CartPole-v1"),
        ...     StateDistanceReward(RBFMeasure(references), in_keys=["observation"]),
        ... )
        >>> env.rollout(5)["next", "intrinsic_reward"].shape
        torch.Size([5, 2])
    """

    def __init__(
        self,
        measure: StateDistanceMeasure | Archive,
        in_keys: Sequence[NestedKey] = ("diversity_state",),
        out_keys: Sequence[NestedKey] = ("intrinsic_reward",),
        *,
        weight: float | Tensor | None = None,
        reward_key: NestedKey = "reward",
        done_key: NestedKey = "done",
        state_ndim: int = 1,
    ) -> None:
        super().__init__(in_keys=list(in_keys), out_keys=list(out_keys))
        if len(self.in_keys) not in (1, 2) or len(self.out_keys) != 1:
            raise ValueError(
                "StateDistanceReward takes one state key and at most one action key, and writes "
                f"one reward key; got in_keys={self.in_keys}, out_keys={self.out_keys}."
            )
        self.measure = RBFMeasure(measure) if isinstance(measure, Archive) else measure
        self.weight, self.reward_key, self.done_key = weight, reward_key, done_key
        self.state_ndim = state_ndim

    @property
    def with_actions(self) -> bool:
        """Whether states are measured together with the actions taken in them."""
        return len(self.in_keys) == 2

    def _step(self, tensordict: TensorDictBase, next_tensordict: TensorDictBase) -> TensorDictBase:
        return self._write(tensordict, next_tensordict)

    @dispatch(source="in_keys", dest="out_keys", auto_batch_size=False)
    def forward(self, tensordict: TensorDictBase) -> TensorDictBase:
        """Writes the rewards of all transitions in a batch, or of plain states without "next"."""
        next_tensordict = tensordict.get("next", default=None)
        if next_tensordict is None:
            return self._write(tensordict, tensordict)
        tensordict.set("next", self._write(tensordict, next_tensordict))
        return tensordict

    def _write(self, start: TensorDictBase, end: TensorDictBase) -> TensorDictBase:
        """Measures a transition from ``start`` to ``end`` and writes into ``end``."""
        states = self._read(start if self.with_actions else end, self.in_keys[0])
        actions = self._read(start, self.in_keys[1]) if self.with_actions else None
        if self.measure.num_references == 0:
            reward = states.new_zeros(*states.shape[: states.ndim - self.state_ndim], 0)
        else:
            reward = self.measure.reward(states, actions)
        if self.measure.final_only:
            done = self._read(end, self.done_key)
            reward = torch.where(_expand_to(done, reward), reward, 0)
        if self.weight is not None:
            task = self._read(end, self.reward_key)
            bonus = (self.weight * reward).sum(-1, keepdim=True)
            end.set(self.reward_key, task + _expand_to(bonus, task))
        return end.set(self.out_keys[0], reward)

    def _read(self, tensordict: TensorDictBase, key: NestedKey) -> Tensor:
        value = tensordict.get(key, default=None)
        if value is None:
            found = sorted(map(str, tensordict.keys(True, True)))
            raise KeyError(
                f"StateDistanceReward reads {key!r}, but the data holds only {', '.join(found)}: "
                "set in_keys to where the environment's diversity state is."
            )
        return value

    def transform_reward_spec(self, reward_spec: Composite) -> Composite:
        """Adds the intrinsic reward [*, J] to the environment's rewards."""
        states = self.parent.full_observation_spec[self.in_keys[0]]
        shape = states.shape[: states.ndim - self.state_ndim]
        reward_spec[self.out_keys[0]] = Unbounded(
            shape=(*shape, self.measure.num_references),
            dtype=states.dtype if states.dtype.is_floating_point else torch.get_default_dtype(),
            device=reward_spec.device,
        )
        return reward_spec


def _expand_to(team: Tensor, like: Tensor) -> Tensor:
    """A team's value [*B, 1] beside those of its agents [*B, A, J]."""
    while team.ndim < like.ndim:
        team = team.unsqueeze(-2)
    return team
