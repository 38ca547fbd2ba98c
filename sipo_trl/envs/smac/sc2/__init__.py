"""SMAC's maps in StarCraft II itself, through pysc2.

- :class:`SC2Backend`: many games at once, which replaces those that are lost;
- :class:`GameWorker`: what runs in the process of each, as :class:`GameSettings` say;
- :func:`check_installation`: where the game and its maps are expected;
- :func:`register_messages`: pysc2 under today's protobuf.

``sipo_trl.envs.smac.sc2.game``, which plays, is imported by workers alone, because of what pysc2
does to a process that imports it.
"""

from sipo_trl.envs.smac.sc2.backend import SC2Backend
from sipo_trl.envs.smac.sc2.channel import GameSettings
from sipo_trl.envs.smac.sc2.installation import check_installation
from sipo_trl.envs.smac.sc2.messages import register_messages
from sipo_trl.envs.smac.sc2.worker import GameWorker

__all__ = [
    "GameSettings",
    "GameWorker",
    "SC2Backend",
    "check_installation",
    "register_messages",
]
