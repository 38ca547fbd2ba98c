"""StarCraft battles, as in the StarCraft multi-agent challenge (SMAC).

- :func:`load_map`, :class:`MapSpec`, :class:`UnitType`: maps and units as data;
- :class:`Snapshot`, :class:`Side`: a moment of many battles, whatever plays them;
- :class:`Features`, :class:`View`: all that agents see, may do and are paid, from snapshots.
"""

from sipo_trl.envs.smac.battle_map import MapSpec, load_map, map_names
from sipo_trl.envs.smac.features import Features
from sipo_trl.envs.smac.snapshot import NO_ACTION, Side, Snapshot
from sipo_trl.envs.smac.units import UNITS, UnitType
from sipo_trl.envs.smac.view import View

__all__ = [
    "NO_ACTION",
    "UNITS",
    "Features",
    "MapSpec",
    "Side",
    "Snapshot",
    "UnitType",
    "View",
    "load_map",
    "map_names",
]
