"""StarCraft battles, as in the StarCraft multi-agent challenge (SMAC).

- :class:`SMACEnv`: the environment;
- :func:`load_map`, :func:`map_names`, :class:`MapSpec`, :data:`UNITS`, :class:`UnitType`: maps and
  units as data;
- :class:`Snapshot`, :class:`Side`: a moment of many battles, whatever plays them;
- :class:`Features`, :class:`View`: all that agents see, may do and are paid, from snapshots;
- :class:`BattleBackend`: what plays battles; :class:`EmbeddedBackend` with our own engine,
  :class:`Engine`, and its state, :class:`Battle`.
"""

from sipo_trl.envs.smac.backend import BattleBackend
from sipo_trl.envs.smac.battle import Battle
from sipo_trl.envs.smac.battle_map import MapSpec, load_map, map_names
from sipo_trl.envs.smac.embedded import EmbeddedBackend
from sipo_trl.envs.smac.engine import Engine
from sipo_trl.envs.smac.env import SMACEnv
from sipo_trl.envs.smac.features import Features
from sipo_trl.envs.smac.snapshot import NO_ACTION, Side, Snapshot
from sipo_trl.envs.smac.units import UNITS, UnitType
from sipo_trl.envs.smac.view import View

__all__ = [
    "NO_ACTION",
    "UNITS",
    "Battle",
    "BattleBackend",
    "EmbeddedBackend",
    "Engine",
    "Features",
    "MapSpec",
    "SMACEnv",
    "Side",
    "Snapshot",
    "UnitType",
    "View",
    "load_map",
    "map_names",
]
