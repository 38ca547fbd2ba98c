"""Policies built from plain descriptions, or from environments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, Literal

import torch
from tensordict import NestedKey
from tensordict.nn import (
    InteractionType,
    ProbabilisticTensorDictModule,
    ProbabilisticTensorDictSequential,
)
from torch import nn
from torchrl.data import Composite
from torchrl.envs import EnvBase
from torchrl.modules import IndependentNormal, MaskedCategorical

from sipo_trl.models.description import (
    Action,
    Network,
    Observation,
    as_json,
    as_key,
    check_choice,
)
from sipo_trl.models.distribution import BoundedTanhNormal, MaskedOneHotChoice, OneHotChoice
from sipo_trl.models.environment import EnvironmentReader
from sipo_trl.models.gaussian import GaussianHead
from sipo_trl.models.initialization import ACTION_GAIN, orthogonal
from sipo_trl.models.layers import Head
from sipo_trl.models.network import build_network

ContinuousDistribution = Literal["tanh_normal", "normal"]

# Finite, so that a row without any legal action (a padded agent) gives no NaN.
MASKED_LOGIT = torch.finfo(torch.float32).min


class Actor(ProbabilisticTensorDictSequential):
    """A policy that carries its own description.

    Attributes:
        policy_spec: ``{"builder": "actor", "kwargs": ...}``, JSON-compatible: with the weights it
            is all that an archive needs to rebuild the policy.
    """

    policy_spec: dict[str, Any]


def actor_spec(
    env: EnvBase | Composite,
    *,
    observation_keys: Sequence[NestedKey] | None = None,
    distribution: ContinuousDistribution = "tanh_normal",
    initial_std: float = 1.0,
    **network: Any,
) -> dict[str, Any]:
    """Describe a policy for an environment as plain data.

    Args:
        env: a TorchRL environment, or its ``specs``. An action in a group with an agent dimension
            makes a multi-agent policy; a Boolean ``action_mask`` beside the action is obeyed.
        observation_keys: what the policy sees; by default ``observation``, or else ``pixels``,
            beside the action. A root key is shown to every agent.
        distribution: of continuous actions: ``"tanh_normal"`` stays within the bounds,
            ``"normal"`` leaves clipping to the environment.
        initial_std: initial standard deviation of continuous actions, before any squashing.
        **network: fields of :class:`~sipo_trl.models.Network`.

    Returns:
        Arguments for :func:`build_actor`.

    Example:
        >>> from torchrl.testing.mocking_classes import DiscreteActionVecMockEnv
        >>> spec = actor_spec(DiscreteActionVecMockEnv(), hidden=[32])
        >>> spec["action"]
        {'key': 'action', 'kind': 'one_hot', 'size': 7, 'low': None, 'high': None}
    """
    environment = EnvironmentReader(env)
    observations = environment.observations(observation_keys)
    return as_json(
        {
            "observations": [asdict(observation) for observation in observations],
            "action": asdict(environment.action()),
            "agents": environment.agents,
            "mask_key": environment.mask_key(),
            "distribution": distribution,
            "initial_std": initial_std,
            "network": asdict(Network(**network)),
        }
    )


def build_actor(
    *,
    observations: Sequence[Mapping[str, Any]],
    action: Mapping[str, Any],
    agents: int | None = None,
    mask_key: NestedKey | None = None,
    distribution: ContinuousDistribution = "tanh_normal",
    initial_std: float = 1.0,
    network: Mapping[str, Any] | None = None,
    device: torch.device | str | None = None,
) -> Actor:
    """Build the policy that a description describes.

    The policy writes the action and its log-probability (``action_log_prob``, ``[*]``, or
    ``[*, A]``: one for each agent) beside each other, and samples unless
    :class:`torchrl.envs.set_exploration_type` says ``DETERMINISTIC``: then it takes the mean, or
    the most likely choice.

    Args:
        observations: the fields of each :class:`~sipo_trl.models.Observation`.
        action: the fields of an :class:`~sipo_trl.models.Action`.
        agents: number of agents that share the policy, or ``None`` for a single one.
        mask_key: Boolean mask of the legal choices, ``[*, size]``, if there is one.
        distribution: of continuous actions, see :func:`actor_spec`.
        initial_std: of continuous actions, see :func:`actor_spec`.
        network: fields of :class:`~sipo_trl.models.Network`.
        device: where the policy goes; not part of its description.

    Example:
        >>> from tensordict import TensorDict
        >>> actor = build_actor(
        ...     observations=[{"key": "observation", "shape": [4]}],
        ...     action={"key": "action", "kind": "categorical", "size": 2},
        ... )
        >>> actor(TensorDict(observation=torch.zeros(8, 4), batch_size=[8]))["action"].shape
        torch.Size([8])
    """
    inputs = [Observation(**observation) for observation in observations]
    decided, shape = Action(**action), Network(**(network or {}))
    if decided.kind == "continuous":
        head, parameters, sampler = _continuous(decided, distribution, initial_std)
    else:
        head, parameters, sampler = _discrete(
            decided, None if mask_key is None else as_key(mask_key)
        )
    deterministic = build_network(
        name="actor",
        observations=inputs,
        agents=agents,
        group=decided.group,
        network=shape,
        head=head,
        out_keys=parameters,
    )
    spec = {
        "observations": [asdict(observation) for observation in inputs],
        "action": asdict(decided),
        "agents": agents,
        "mask_key": mask_key,
        "distribution": distribution,
        "initial_std": initial_std,
        "network": asdict(shape),
    }
    actor = Actor(deterministic, sampler)
    actor.policy_spec = {"builder": "actor", "kwargs": as_json(spec)}
    return actor.to(device)


def make_actor(
    env: EnvBase | Composite, *, device: torch.device | str | None = None, **options: Any
) -> Actor:
    """Build a fresh policy for an environment.

    Args:
        env: a TorchRL environment, or its ``specs``.
        device: where the policy goes.
        **options: those of :func:`actor_spec`.

    Example:
        >>> from torchrl.testing.mocking_classes import ContinuousActionVecMockEnv
        >>> env = ContinuousActionVecMockEnv()
        >>> actor = make_actor(env, hidden=[32], activation="relu")
        >>> env.rollout(3, actor)["action_log_prob"].shape
        torch.Size([3])
    """
    return build_actor(**actor_spec(env, **options), device=device)


Parts = tuple[Callable[[int], nn.Module], list[NestedKey], ProbabilisticTensorDictModule]


def _continuous(action: Action, distribution: ContinuousDistribution, initial_std: float) -> Parts:
    """Head, parameter keys and sampler of a continuous action."""
    check_choice("distribution", distribution, ContinuousDistribution)
    squashed = distribution == "tanh_normal"
    bounds = {}
    if squashed:
        if action.low is None or action.high is None:
            raise ValueError(
                f"Action {action.key!r} has no bounds, which distribution 'tanh_normal' needs: "
                "bound the action spec, or choose distribution='normal'."
            )
        bounds = {"low": torch.tensor(action.low), "high": torch.tensor(action.high)}
    head = partial(GaussianHead, size=action.size, initial_std=initial_std, squashed=squashed)
    parameters = {name: (*action.group, name) for name in ("loc", "scale")}
    family = BoundedTanhNormal if squashed else IndependentNormal
    return head, list(parameters.values()), _sampler(action, parameters, family, bounds)


def _discrete(action: Action, mask_key: NestedKey | None) -> Parts:
    """Head, parameter keys and sampler of a choice."""

    def head(features: int) -> nn.Module:
        return orthogonal(Head(features, action.size), gain=ACTION_GAIN)

    logits = (*action.group, "logits")
    one_hot = action.kind == "one_hot"
    if mask_key is None:
        family = OneHotChoice if one_hot else torch.distributions.Categorical
        return head, [logits], _sampler(action, {"logits": logits}, family, {})
    parameters = {"logits": logits, "mask": mask_key}
    family = MaskedOneHotChoice if one_hot else MaskedCategorical
    return head, [logits], _sampler(action, parameters, family, {"neg_inf": MASKED_LOGIT})


def _sampler(
    action: Action,
    parameters: Mapping[str, NestedKey],
    family: type[torch.distributions.Distribution],
    constants: Mapping[str, Any],
) -> ProbabilisticTensorDictModule:
    return ProbabilisticTensorDictModule(
        in_keys=dict(parameters),
        out_keys=[action.key],
        distribution_class=family,
        distribution_kwargs=dict(constants),
        default_interaction_type=InteractionType.RANDOM,
        return_log_prob=True,
        log_prob_key=(*action.group, "action_log_prob"),
    )
