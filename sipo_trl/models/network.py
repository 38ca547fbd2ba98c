"""Trunk, memory and head as one TensorDict module."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tensordict import NestedKey, TensorDictBase
from tensordict.nn import TensorDictModule, TensorDictModuleBase, TensorDictSequential
from torch import Tensor, nn

from sipo_trl.models.description import Network, Observation
from sipo_trl.models.gru import MaskedGRU
from sipo_trl.models.trunk import Trunk


class TensorModule(TensorDictModule):
    """A ``TensorDictModule`` whose module returns tensors and nothing else.

    TensorDict's own takes anything, and to convert it looks for optional libraries on the disk at
    every call: about a tenth of the time of a small policy's step.
    """

    def _write_to_tensordict(
        self,
        tensordict: TensorDictBase,
        tensors: Sequence[Tensor],
        tensordict_out: TensorDictBase | None = None,
        out_keys: Sequence[NestedKey] | None = None,
    ) -> TensorDictBase:
        target = tensordict if tensordict_out is None else tensordict_out
        for key, tensor in zip(out_keys or self.out_keys, tensors, strict=True):
            target.set(key, tensor)
        return target


def build_network(
    *,
    name: str,
    observations: Sequence[Observation],
    agents: int | None,
    group: tuple[str, ...],
    network: Network,
    head: Callable[[int], nn.Module],
    out_keys: Sequence[NestedKey],
) -> TensorDictModuleBase:
    """Build the deterministic part of an actor, or a whole critic.

    Args:
        name: what the hidden state is called after: ``(*group, "<name>_hidden")``.
        observations: the inputs.
        agents: number of agents, or ``None`` for a network without agent dimension.
        group: the path of the agents' group.
        network: shape of the trunk, and whether there is a GRU.
        head: makes the last layers for a number of features.
        out_keys: where the head's outputs go.

    Example:
        >>> module = build_network(
        ...     name="critic",
        ...     observations=[Observation(key="observation", shape=[3])],
        ...     agents=None,
        ...     group=(),
        ...     network=Network(gru=64),
        ...     head=lambda features: nn.Linear(features, 1),
        ...     out_keys=["state_value"],
        ... )
        >>> module.in_keys, module.out_keys
        (['observation', 'critic_hidden', 'is_init'], ['state_value', ('next', 'critic_hidden')])
    """
    trunk = Trunk(observations, agents=agents, network=network)
    in_keys = [observation.key for observation in observations]
    if network.gru is None:
        trunk.layers.append(head(trunk.out_features))
        return TensorModule(trunk, in_keys=in_keys, out_keys=out_keys)

    features: NestedKey = (*group, f"_{name}_features")
    hidden: NestedKey = (*group, f"{name}_hidden")
    norm = nn.LayerNorm(network.gru) if network.layer_norm else nn.Identity()
    return TensorDictSequential(
        TensorModule(trunk, in_keys=in_keys, out_keys=[features]),
        MaskedGRU(
            trunk.out_features,
            network.gru,
            in_key=features,
            out_key=features,
            hidden_key=hidden,
            agents=agents,
        ),
        TensorModule(nn.Sequential(norm, head(network.gru)), in_keys=[features], out_keys=out_keys),
        selected_out_keys=[*out_keys, ("next", *hidden)],
    )
