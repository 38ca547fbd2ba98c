"""Orthogonal initialisation, as in MAPPO."""

from __future__ import annotations

from typing import TypeVar

from torch import nn

Layer = TypeVar("Layer", nn.Linear, nn.Conv2d, nn.GRUCell)

HIDDEN_GAIN = 2**0.5
ACTION_GAIN = 0.01
VALUE_GAIN = 0.01  # an untrained critic should say nothing, not noise


def orthogonal(layer: Layer, *, gain: float) -> Layer:
    """Make every weight matrix of a layer orthogonal and every bias zero, in place.

    Args:
        layer: the layer to initialise.
        gain: the weights' singular values. A small gain on the action head makes a fresh policy
            nearly uniform, whatever it observes.

    Returns:
        The same layer.

    Example:
        >>> import torch
        >>> weight = orthogonal(nn.Linear(8, 3), gain=2.0).weight
        >>> torch.allclose(weight @ weight.T, 4 * torch.eye(3), atol=1e-5)
        True
    """
    for parameter in layer.parameters():
        if parameter.ndim > 1:
            nn.init.orthogonal_(parameter, gain)
        else:
            nn.init.zeros_(parameter)
    return layer
