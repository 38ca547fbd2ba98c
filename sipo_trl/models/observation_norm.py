"""Observations brought to a common scale that is learned on the way."""

from __future__ import annotations

import torch
from torch import Tensor, nn

# Further from the mean says no more: a rare outlier must not drive the network.
_BOUND = 10.0


class ObservationNorm(nn.Module):
    """Centre and scale features by the mean and deviation of all that was seen so far.

    The statistics are buffers, so that they are part of a policy's weights and of its archive
    entry. They change in :meth:`update` only, never while acting or learning: a policy's
    probabilities stay those with which it collected.

    Args:
        features: number F of features.

    Example:
        >>> norm = ObservationNorm(1)
        >>> norm(torch.tensor([[3.0]]))  # nothing is known yet
        tensor([[3.]])
        >>> norm.update(torch.tensor([[1.0], [3.0]]))
        >>> norm(torch.tensor([[3.0]]))
        tensor([[1.]])
    """

    mean: Tensor
    variance: Tensor
    count: Tensor

    def __init__(self, features: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("variance", torch.ones(features))
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))

    def forward(self, features: Tensor) -> Tensor:
        """Return features ``[*, F]`` in units of their deviation from the mean."""
        return ((features - self.mean) / self.deviation).clamp(-_BOUND, _BOUND)

    @property
    def deviation(self) -> Tensor:
        """What features are divided by ``[F]``."""
        return self.variance.clamp_min(1e-5).sqrt()

    @torch.no_grad()
    def update(self, features: Tensor) -> None:
        """Add features ``[*, F]`` to what was seen."""
        flat = features.reshape(-1, features.shape[-1])
        self.count += len(flat)
        share = len(flat) / self.count
        shift = flat.mean(0) - self.mean
        spread = flat.var(0, correction=0) + (1 - share) * shift.square()
        self.variance += share * (spread - self.variance)
        self.mean += share * shift
