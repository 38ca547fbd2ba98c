"""Putting the features of states on one scale, once and for all."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from sipo_trl.archive import Archive

# Pieces of this many elements keep statistics of a mapped archive from being a copy of it.
_PIECE = 2**20


class StateNormalizer(nn.Module):
    """Shift and scale states by fixed statistics.

    The statistics never move: a reward whose scale follows the data would not be stationary.

    Args:
        mean: what is subtracted, [*F] or broadcastable to it.
        std: standard deviation of each feature, in the same way.
        floor: a feature whose standard deviation is below this keeps its own scale, so that noise
            in it cannot decide what is different.

    Example:
        >>> normalizer = StateNormalizer(torch.tensor([1.0, 1.0]), torch.tensor([2.0, 1e-6]))
        >>> normalizer(torch.tensor([[5.0, 5.0]]))
        tensor([[2., 4.]])
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, mean: Tensor, std: Tensor, *, floor: float = 1e-3) -> None:
        super().__init__()
        self.register_buffer("mean", mean.detach().clone())
        self.register_buffer("scale", torch.where(std < floor, 1.0, std.detach()))

    @classmethod
    def identity(cls) -> "StateNormalizer":
        """Make a normaliser that leaves floating-point states as they are.

        Example:
            >>> StateNormalizer.identity()(torch.tensor([5.0]))
            tensor([5.])
        """
        return cls(torch.zeros(()), torch.ones(()))

    @classmethod
    def from_references(
        cls, references: Archive | Sequence[Tensor], *, floor: float = 1e-3
    ) -> "StateNormalizer":
        """Take the statistics of the first entry; integer images are scaled from 255 to 1.

        Args:
            references: an archive, which has stored them, or tensors [n_j, *F]; at least one.
            floor: see :class:`StateNormalizer`.

        Example:
            >>> normalizer = StateNormalizer.from_references([torch.tensor([[0.0], [4.0]])])
            >>> normalizer(torch.tensor([[6.0]]))
            tensor([[2.]])
        """
        if isinstance(references, Archive):
            first, mean, std = references[0].states, references.state_mean, references.state_std
        else:
            first, mean, std = references[0], None, None
        if not first.is_floating_point():
            mean, std = torch.zeros((), device=first.device), torch.tensor(255.0).to(first.device)
        elif mean is None or std is None:
            mean, std = mean_and_std(first)
        return cls(mean, std, floor=floor)

    def forward(self, states: Tensor) -> Tensor:
        """Normalise states [*, *F]."""
        return (states - self.mean) / self.scale


@torch.no_grad()
def mean_and_std(states: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and population standard deviation [*F] of states [n, *F], as float32.

    Example:
        >>> mean_and_std(torch.tensor([[0.0], [4.0]]))
        (tensor([2.]), tensor([2.]))
    """
    pieces = states.split(max(1, _PIECE * len(states) // states.numel()))
    # One piece of memory for all of them: glibc's allocator often does not reuse aligned ones.
    precise = torch.empty_like(pieces[0], dtype=torch.float64)
    mean, variance = torch.zeros((2, *states.shape[1:]), dtype=torch.float64, device=states.device)
    for piece in pieces:
        mean += precise[: len(piece)].copy_(piece).sum(0) / len(states)
    for piece in pieces:
        squares = precise[: len(piece)].copy_(piece).sub_(mean).square_()
        variance += squares.sum(0) / len(states)
    return mean.float(), variance.sqrt().float()
