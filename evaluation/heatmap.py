"""Where policies spend their time, as pictures of the plane."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from matplotlib.figure import Figure
from numpy.typing import NDArray
from torch import Tensor

Bounds = tuple[tuple[float, float], tuple[float, float]]


@dataclass(frozen=True)
class Heatmap:
    """The share of the time that is spent in each cell of a grid.

    Attributes:
        shares: of each cell [bins, bins], first index along x; they sum up to 1.
        bounds: where the grid begins and ends, along x and along y.
    """

    shares: NDArray[np.float64]
    bounds: Bounds

    def overlap(self, other: "Heatmap") -> float:
        """How much of the time both are in the same places, from 0 to 1, on the same grid.

        Examples:
            >>> still, moving = torch.zeros(9, 2), torch.tensor([[0.0, 0.0], [9.0, 9.0]])
            >>> first, second = position_heatmaps([still, moving])
            >>> first.overlap(second)
            0.5
        """
        return float(np.minimum(self.shares, other.shares).sum())


def position_heatmaps(
    positions: Sequence[Tensor],
    alive: Sequence[Tensor] | None = None,
    *,
    bins: int = 32,
    bounds: Bounds | None = None,
) -> list[Heatmap]:
    """Heat maps of several policies, all on the same grid.

    Args:
        positions: for each policy, the positions [n, 2], or of several agents [n, A, 2].
        alive: for each policy, which of the agents are alive [n, A]; the dead are nowhere.
        bins: cells along each side.
        bounds: where the grid begins and ends; by default it holds all positions.

    Examples:
        >>> (heatmap,) = position_heatmaps([torch.tensor([[0.0, 0.0], [0.0, 4.0]])], bins=2)
        >>> heatmap.shares.tolist(), heatmap.bounds
        ([[0.0, 0.0], [0.5, 0.5]], ((-0.5, 0.5), (0.0, 4.0)))
    """
    if alive is None:
        living = [some.reshape(-1, 2) for some in positions]
    else:
        living = [
            some[mask.bool()].reshape(-1, 2) for some, mask in zip(positions, alive, strict=True)
        ]
    if bounds is None:
        bounds = _bounds(torch.cat(living))
    return [_heatmap(some, bins, bounds) for some in living]


def plot_heatmaps(heatmaps: Sequence[Heatmap], titles: Sequence[str]) -> Figure:
    """Draw heat maps side by side, with the same scale of colours.

    Args:
        heatmaps: of the policies.
        titles: one for each.

    Examples:
        >>> figure = plot_heatmaps(position_heatmaps([torch.rand(50, 2)] * 3), ["a", "b", "c"])
        >>> len(figure.axes)
        3
    """
    columns = min(5, len(heatmaps))
    rows = -(-len(heatmaps) // columns)
    figure = Figure(figsize=(2.6 * columns, 2.9 * rows), dpi=150, layout="constrained")
    top = max(float(heatmap.shares.max()) for heatmap in heatmaps)
    for index, (heatmap, title) in enumerate(zip(heatmaps, titles, strict=True)):
        axes = figure.add_subplot(rows, columns, index + 1)
        (left, right), (low, high) = heatmap.bounds
        # Most of the time is spent in few cells: the root lets the others be seen.
        axes.imshow(
            np.sqrt(heatmap.shares.T),
            origin="lower",
            extent=(left, right, low, high),
            vmax=np.sqrt(top),
            cmap="magma",
            interpolation="bilinear",
        )
        axes.set_title(title, fontsize=10)
        axes.tick_params(labelsize=7)
    return figure


def _heatmap(positions: Tensor, bins: int, bounds: Bounds) -> Heatmap:
    x, y = positions.double().numpy().T
    counts, _, _ = np.histogram2d(x, y, bins=bins, range=bounds)
    return Heatmap(counts / max(1.0, counts.sum()), bounds)


def _bounds(positions: Tensor) -> Bounds:
    """What holds all positions; a side without an extent gets one."""
    low, high = positions.double().aminmax(dim=0)
    slack = torch.where(high > low, 0.0, 0.5)
    (left, bottom), (right, top) = (low - slack).tolist(), (high + slack).tolist()
    return (left, right), (bottom, top)
