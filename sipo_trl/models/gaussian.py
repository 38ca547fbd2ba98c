"""The head of continuous policies."""

from __future__ import annotations

import math

import torch
from torch import nn

from sipo_trl.models.initialization import ACTION_GAIN, orthogonal
from sipo_trl.models.layers import Head

# tanh(5) = 0.9999: beyond, a squashed action does not change, but its log-probability overflows.
LARGEST_SQUASHED_LOC = 5.0


class GaussianHead(nn.Module):
    """Map features to a mean; the standard deviation is a parameter of its own.

    Args:
        features: number of input features.
        size: number of action components.
        initial_std: initial standard deviation.
        squashed: whether a tanh follows; the mean is then kept, smoothly, within -5 to 5.

    Shapes:
        ``[*, features]`` to mean and standard deviation, each ``[*, size]``.

    Example:
        >>> loc, scale = GaussianHead(64, 2, initial_std=0.5, squashed=True)(torch.zeros(3, 64))
        >>> loc.shape, scale[0]
        (torch.Size([3, 2]), tensor([0.5000, 0.5000], grad_fn=<SelectBackward0>))
    """

    def __init__(self, features: int, size: int, *, initial_std: float, squashed: bool) -> None:
        super().__init__()
        self.loc = orthogonal(Head(features, size), gain=ACTION_GAIN)
        self.log_std = nn.Parameter(torch.full((size,), math.log(initial_std)))
        self.squashed = squashed

    def forward(self, features: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Compute mean and standard deviation."""
        loc = self.loc(features)
        if self.squashed:
            loc = LARGEST_SQUASHED_LOC * torch.tanh(loc / LARGEST_SQUASHED_LOC)
        return loc, self.log_std.exp().expand_as(loc)
