"""Maps: who fights whom, where, and on what ground."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal, get_args

import torch
from torch import Tensor

from sipo_trl.envs.smac.units import UNITS, UnitType

SIZE = 32
"""Maps are squares of so many cells."""
FIRST_ATTACK = 6
"""The action that attacks the first enemy."""

Order = Literal["between", "attack"]
Rectangle = tuple[int, int, int, int]


@dataclass(frozen=True)
class MapSpec:
    """A map, in the game's own numbers.

    Attributes:
        name: of the map.
        allies: the kind of each unit that the agents control.
        ally_places: where each of them starts [x, y]; several can share a place, around which they
            are then spread.
        enemies: the kind of each enemy.
        enemy_places: where each of them starts.
        ground: rectangles (left, low, right, high) of cells that can be walked on, ends included.
        cliff: the same of those that only climbers can walk on.
        order: what enemies do. ``"between"``: they go to a random point between the allies'
            places, and attack whom they see; ``"attack"``: they attack the nearest ally.
        episode_limit: the most steps of an episode.

    Examples:
        >>> spec = load_map("2m_vs_1z")
        >>> spec.num_allies, spec.num_enemies, spec.num_actions
        (2, 1, 7)
    """

    name: str
    allies: tuple[UnitType, ...]
    ally_places: tuple[tuple[float, float], ...]
    enemies: tuple[UnitType, ...]
    enemy_places: tuple[tuple[float, float], ...]
    ground: tuple[Rectangle, ...]
    cliff: tuple[Rectangle, ...]
    order: Order
    episode_limit: int

    @property
    def num_allies(self) -> int:
        """How many agents there are."""
        return len(self.allies)

    @property
    def num_enemies(self) -> int:
        """How many enemies there are."""
        return len(self.enemies)

    @property
    def num_actions(self) -> int:
        """No-op, stop, four ways to move, and one attack per enemy."""
        return FIRST_ATTACK + self.num_enemies

    @property
    def kinds(self) -> tuple[UnitType, ...]:
        """The kinds of units that features tell apart; none where each side has only one."""
        if len(set(self.allies)) == len(set(self.enemies)) == 1:
            return ()
        return tuple(dict.fromkeys((*self.allies, *self.enemies)))

    def walkable(self, *, climbs: bool = False) -> Tensor:
        """Which cells can be walked on: bool [y, x].

        Args:
            climbs: by units for which cliffs are no obstacle.
        """
        cells = torch.zeros(SIZE, SIZE, dtype=torch.bool)
        for left, low, right, high in (*self.ground, *(self.cliff if climbs else ())):
            cells[low : high + 1, left : right + 1] = True
        return cells


@cache
def load_map(name: str) -> MapSpec:
    """Read the file of a map.

    A file says, in TOML, ``episode_limit``, ``order``, ``ground`` and, if there is one, ``cliff``
    (lists of ``[left, low, right, high]``), ``allies`` and ``enemies`` (lists of ``[kind, x, y]``
    or ``[kind, x, y, count]``).

    Args:
        name: of the map, such as ``"2m_vs_1z"``.

    Examples:
        >>> sorted(map_names())
        ['2c_vs_64zg', '2m_vs_1z', '2s3z', '3m']
        >>> load_map("2c_vs_64zg").enemies[63].name
        'zergling'
    """
    if name not in map_names():
        raise ValueError(f"There is no map {name!r}: choose one of {sorted(map_names())}.")
    data = tomllib.loads((files(__package__) / "maps" / f"{name}.toml").read_text())
    if data["order"] not in get_args(Order):
        raise ValueError(f"{name}: order is {data['order']!r}; choose one of {get_args(Order)}.")
    allies, ally_places = _placed(data["allies"])
    enemies, enemy_places = _placed(data["enemies"])
    return MapSpec(
        name=name,
        allies=allies,
        ally_places=ally_places,
        enemies=enemies,
        enemy_places=enemy_places,
        ground=tuple(map(tuple, data["ground"])),
        cliff=tuple(map(tuple, data.get("cliff", ()))),
        order=data["order"],
        episode_limit=data["episode_limit"],
    )


def map_names() -> set[str]:
    """The maps that there are files of."""
    folder = files(__package__) / "maps"
    return {file.name.removesuffix(".toml") for file in folder.iterdir() if ".toml" in file.name}


def _placed(
    rows: list[list[str | float]],
) -> tuple[tuple[UnitType, ...], tuple[tuple[float, float], ...]]:
    """Each unit's kind and place."""
    units, places = [], []
    for kind, x, y, *count in rows:
        number = int(count[0]) if count else 1
        units += [UNITS[str(kind)]] * number
        places += [(float(x), float(y))] * number
    return tuple(units), tuple(places)
