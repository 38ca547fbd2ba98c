"""Where to go first on the way from any cell of a map to any other, computed once per map."""

from functools import cache

import torch
from torch import Tensor

from sipo_trl.envs.smac.battle_map import SIZE, MapSpec

# Looks along a line: what a line can miss between two of them is a corner, which units slide along.
_LOOKS = 2 * SIZE
# Whoever slides along a wall that sticks out no further than this does without a table.
_DETOUR = 2.0


@cache
def waypoints(spec: MapSpec, *, climbs: bool = False) -> Tensor | None:
    """The next cell to head for, in a straight line, from each cell to each [S * S, S * S], int16.

    Cells are numbered ``y * S + x``. Where the goal can be seen over free ground the entry is -1.
    A cell that cannot be walked on stands for the nearest that can.

    Args:
        spec: the map.
        climbs: for units for which cliffs are no obstacle.

    Returns:
        The table, or ``None`` if nobody has to make a detour worth the name.

    Examples:
        >>> from sipo_trl.envs.smac import load_map
        >>> waypoints(load_map("2m_vs_1z")) is None
        True
        >>> table = waypoints(load_map("2c_vs_64zg"))
        >>> y, x = divmod(int(table[11 * 32 + 5, 14 * 32 + 5]), 32)  # across the cliff
        >>> y, x  # round its left end
        (11, 3)
    """
    free = spec.walkable(climbs=climbs)
    cells = free.flatten().nonzero().squeeze(1)
    places = torch.stack([cells % SIZE, cells // SIZE], -1) + 0.5
    seen = _visible(places, free)
    first, detour = _first_steps(places, seen, _corners(free)[cells])
    if detour < _DETOUR:
        return None
    # Every cell stands for the nearest free one.
    everywhere = torch.arange(SIZE * SIZE)
    everywhere = torch.stack([everywhere % SIZE, everywhere // SIZE], -1) + 0.5
    nearest = torch.cdist(everywhere, places).argmin(1)
    first = first[nearest][:, nearest]
    return torch.where(first == nearest, -1, cells[first]).to(torch.int16)


def _visible(places: Tensor, free: Tensor) -> Tensor:
    """Between which of N places the straight line is free [N, N]."""
    seen = torch.ones(len(places), len(places), dtype=torch.bool)
    for part in torch.linspace(0, 1, _LOOKS):
        x, y = ((1 - part) * places.unsqueeze(1) + part * places).int().unbind(-1)
        seen &= free.flatten()[y * SIZE + x]
    return seen & seen.T


def _corners(free: Tensor) -> Tensor:
    """The cells [S * S] around which the shortest ways turn: with a wall across one corner only."""
    padded = torch.nn.functional.pad(free, (1, 1, 1, 1))
    inner = slice(1, -1)
    corners = torch.zeros_like(free)
    for dy in (0, 2):
        for dx in (0, 2):
            rows, columns = slice(dy, dy + SIZE), slice(dx, dx + SIZE)
            corners |= ~padded[rows, columns] & padded[rows, inner] & padded[inner, columns]
    return (corners & free).flatten()


def _first_steps(places: Tensor, seen: Tensor, corners: Tensor) -> tuple[Tensor, float]:
    """First stations [N, N] of the shortest ways over corners, and the longest detour.

    The ways are Floyd and Warshall's.
    """
    straight = torch.cdist(places, places)
    length = straight.masked_fill(~seen, torch.inf)
    first = torch.arange(len(places)).expand_as(seen).clone()
    for corner in corners.nonzero().squeeze(1).tolist():
        over = length[:, corner, None] + length[corner]
        first = torch.where(over < length, first[:, corner, None], first)
        length = torch.minimum(length, over)
    return first, (length - straight).max().item()
