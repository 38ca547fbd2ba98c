"""Where the units of a map start."""

import math

import torch
from torch import Tensor

from sipo_trl.envs.smac.battle_map import MapSpec
from sipo_trl.envs.smac.units import UnitType

# Free ground around a place, so that a start can be a little off it.
_MARGIN = 0.3
_REACH = 24


def start_places(spec: MapSpec) -> Tensor:
    """Places of all units [U, 2]: those that share one on the map stand close together around it.

    Args:
        spec: the map.

    Examples:
        >>> from sipo_trl.envs.smac import load_map
        >>> start_places(load_map("2m_vs_1z")).tolist()
        [[13.0, 12.0], [19.0, 12.0], [16.0, 19.0]]
    """
    sides = (spec.allies, spec.ally_places), (spec.enemies, spec.enemy_places)
    return torch.cat([_side(spec, *side) for side in sides])


def _side(
    spec: MapSpec, units: tuple[UnitType, ...], places: tuple[tuple[float, float], ...]
) -> Tensor:
    found: list[Tensor] = []
    for group in dict.fromkeys(zip(units, places, strict=True)):
        unit, place = group
        count = sum(pair == group for pair in zip(units, places, strict=True))
        spread = _lattice(unit.separation) + torch.tensor(place)
        free = spec.walkable(climbs=unit.climbs)
        corners = spread.unsqueeze(1) + _MARGIN * torch.tensor([[-1, -1], [-1, 1], [1, -1], [1, 1]])
        cells = corners.long().clamp(0, len(free) - 1)
        spread = spread[free[cells[..., 1], cells[..., 0]].all(1)][:count]
        # SMAC numbers units of one kind by x, then y.
        found += sorted(spread, key=torch.Tensor.tolist)
    return torch.stack(found)


def _lattice(radius: float) -> Tensor:
    """Places around the origin at which discs of a radius touch, from near to far [n, 2]."""
    steps = torch.arange(-_REACH, _REACH + 1)
    row, column = torch.meshgrid(steps, steps, indexing="ij")
    x = 2 * radius * (column + (row % 2) / 2)
    y = math.sqrt(3) * radius * row
    places = torch.stack([x.flatten(), y.flatten()], -1).float()
    return places[places.norm(dim=1).argsort(stable=True)]
