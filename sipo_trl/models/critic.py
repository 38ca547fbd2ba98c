"""Critics with one value head for the task and one for every archived policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import torch
from tensordict import NestedKey
from tensordict.nn import TensorDictModuleBase
from torchrl.data import Composite
from torchrl.envs import EnvBase

from sipo_trl.models.description import Network, Observation, as_json, as_key
from sipo_trl.models.environment import EnvironmentReader
from sipo_trl.models.initialization import VALUE_GAIN, orthogonal
from sipo_trl.models.layers import Head
from sipo_trl.models.network import build_network


def critic_spec(
    env: EnvBase | Composite,
    *,
    heads: int,
    observation_keys: Sequence[NestedKey] | None = None,
    **network: Any,
) -> dict[str, Any]:
    """Describe a critic for an environment as plain data.

    Args:
        env: a TorchRL environment, or its ``specs``.
        heads: number of values: 1 for the task and 1 for each archived policy.
        observation_keys: what the critic sees. A root key is shown to every agent, a key in the
            agents' group shows each agent its own. By default, with agents, the ``state`` in the
            group or else the global one at the root, or else the observations of all agents
            joined; without agents, what the actor sees.
        **network: fields of :class:`~sipo_trl.models.Network`.

    Returns:
        Arguments for :func:`build_critic`.

    Example:
        >>> from torchrl.testing.mocking_classes import ContinuousActionVecMockEnv
        >>> critic_spec(ContinuousActionVecMockEnv(), heads=3)["value_key"]
        'state_value'
    """
    environment = EnvironmentReader(env)
    joint = False
    if observation_keys is None and environment.agents is not None:
        states = filter(environment.has, (environment.in_group("state"), "state"))
        state = next(states, None)
        joint = state is None
        observation_keys = None if state is None else [state]
    observations = environment.observations(observation_keys, joint=joint)
    return as_json(
        {
            "heads": heads,
            "value_key": environment.in_group("state_value"),
            "observations": [asdict(observation) for observation in observations],
            "agents": environment.agents,
            "network": asdict(Network(**network)),
        }
    )


def build_critic(
    *,
    heads: int,
    value_key: NestedKey,
    observations: Sequence[Mapping[str, Any]],
    agents: int | None = None,
    network: Mapping[str, Any] | None = None,
    device: torch.device | str | None = None,
) -> TensorDictModuleBase:
    """Build the critic that a description describes.

    It writes ``[*, heads]`` values, or ``[*, A, heads]`` with agents, head 0 first.

    A critic with a GRU values a batch ``data`` of shape ``[*B, T]`` and what follows each of its
    steps in two calls::

        with set_recurrent_mode(True):
            critic(data)  # V(s_t), and the memory after each step, under "next"
        with set_recurrent_mode(False):
            critic(data["next"].copy())  # V(s_{t+1}), each from its own memory

    The second call needs no loop over time and is right at time-outs and at the batch's end too,
    since ``"next"`` holds the last observation of each episode. For the first call ``data`` has to
    hold the memory at the sequences' first steps: collect with ``TensorDictSequential(actor,
    critic)``, which stores it with every step, also for training on shorter sequences.

    Args:
        heads: number of values: 1 for the task and 1 for each archived policy.
        value_key: where the values go. Its group also holds the memory, ``critic_hidden``.
        observations: the fields of each :class:`~sipo_trl.models.Observation`.
        agents: number of agents that share the critic, or ``None`` for a single one.
        network: fields of :class:`~sipo_trl.models.Network`.
        device: where the critic goes.

    Example:
        >>> from tensordict import TensorDict
        >>> critic = build_critic(
        ...     heads=3,
        ...     value_key=("agents", "state_value"),
        ...     observations=[{"key": "state", "shape": [7]}],
        ...     agents=2,
        ... )
        >>> data = TensorDict(state=torch.zeros(8, 7), batch_size=[8])
        >>> critic(data)["agents", "state_value"].shape
        torch.Size([8, 2, 3])
    """
    key = as_key(value_key)
    critic = build_network(
        name="critic",
        observations=[Observation(**observation) for observation in observations],
        agents=agents,
        group=() if isinstance(key, str) else key[:-1],
        network=Network(**(network or {})),
        head=lambda features: orthogonal(Head(features, heads), gain=VALUE_GAIN),
        out_keys=[key],
    )
    return critic.to(device)


def make_critic(
    env: EnvBase | Composite,
    *,
    heads: int,
    device: torch.device | str | None = None,
    **options: Any,
) -> TensorDictModuleBase:
    """Build a fresh critic for an environment.

    Args:
        env: a TorchRL environment, or its ``specs``.
        heads: number of values: 1 for the task and 1 for each archived policy.
        device: where the critic goes.
        **options: those of :func:`critic_spec`.

    Example:
        >>> from torchrl.testing.mocking_classes import ContinuousActionVecMockEnv
        >>> env = ContinuousActionVecMockEnv()
        >>> make_critic(env, heads=3, layer_norm=True)(env.reset())["state_value"].shape
        torch.Size([3])
    """
    return build_critic(**critic_spec(env, heads=heads, **options), device=device)
