"""A policy as plain numbers, for workers that decide without torch."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from sipo_trl.models.actor import Actor
from sipo_trl.models.gaussian import GaussianHead
from sipo_trl.models.layers import Tanh
from sipo_trl.models.observation_norm import ObservationNorm
from sipo_trl.models.trunk import Trunk

Layer = list[str | int]

ADVICE = "cannot be run by workers: set collector.decide_in_workers=false."

_ACTIVATIONS: dict[type[nn.Module], str] = {nn.ReLU: "relu", nn.ELU: "elu", Tanh: "tanh"}


def plain_layers(actor: Actor) -> list[Layer]:
    """Describe what a policy makes of an observation, layer by layer.

    Args:
        actor: chooses among actions; sees one observation of each agent.

    Returns:
        The layers of a ``PlainNetwork`` (``sipo_trl.envs.workers``).

    Raises:
        ValueError: if the policy has other parts than such a network can have.

    Example:
        >>> from sipo_trl.models import build_actor
        >>> actor = build_actor(
        ...     observations=[{"key": ["agents", "observation"], "shape": [5], "scope": "agent"}],
        ...     action={"key": ["agents", "action"], "kind": "categorical", "size": 4},
        ...     agents=2,
        ...     network={"hidden": [8], "gru": 8},
        ... )
        >>> plain_layers(actor)
        [['agent_id', 2], ['linear', 7, 8], ['tanh'], ['gru', 8, 8], ['linear', 8, 4]]
    """
    described = actor.policy_spec["kwargs"]
    inputs = [observation["scope"] for observation in described["observations"]]
    if described["mask_key"] is not None or inputs not in (["agent"], ["root"]):
        raise ValueError(f"A policy with a mask or several observations {ADVICE}")
    return [layer for layer, _ in _parts(actor)]


@torch.no_grad()
def plain_weights(actor: Actor) -> Tensor:
    """All that the layers of :func:`plain_layers` have learned, one after another [P].

    Example:
        >>> from sipo_trl.models import build_actor
        >>> actor = build_actor(
        ...     observations=[{"key": "observation", "shape": [5]}],
        ...     action={"key": "action", "kind": "categorical", "size": 4},
        ...     network={"hidden": [8]},
        ... )
        >>> plain_weights(actor).shape
        torch.Size([84])
    """
    weights = [weight.flatten() for _, parts in _parts(actor) for weight in parts]
    return torch.cat(weights).float().cpu()


def _parts(actor: Actor) -> Iterator[tuple[Layer, list[Tensor]]]:
    """Each layer and its weights."""
    for leaf in _leaves(actor[0]):
        parameters: list[Tensor] = list(leaf.parameters())
        if isinstance(leaf, nn.GRUCell):
            yield ["gru", leaf.input_size, leaf.hidden_size], parameters
        elif isinstance(leaf, nn.Linear):
            yield ["linear", leaf.in_features, leaf.out_features], parameters
        elif isinstance(leaf, nn.LayerNorm):
            yield ["layer_norm", leaf.normalized_shape[0]], parameters
        elif isinstance(leaf, ObservationNorm):
            yield ["observation_norm", len(leaf.mean)], [leaf.mean, leaf.deviation]
        elif isinstance(leaf, Trunk):
            yield ["agent_id", len(leaf.agent_id)], []
        elif type(leaf) in _ACTIVATIONS:
            yield [_ACTIVATIONS[type(leaf)]], []
        else:
            raise ValueError(f"A policy with a {type(leaf).__name__} {ADVICE}")


def _leaves(module: nn.Module) -> Iterator[nn.Module]:
    """The modules that do something, in their order; a trunk where it tells agents apart."""
    if isinstance(module, Trunk):
        yield from _leaves(module.encoders)
        yield from _leaves(module.norm)
        if len(module.agent_id):
            yield module
        yield from _leaves(module.layers)
    elif isinstance(module, GaussianHead) or not list(module.children()):
        if not isinstance(module, nn.Identity):
            yield module
    else:
        for child in module.children():
            yield from _leaves(child)
