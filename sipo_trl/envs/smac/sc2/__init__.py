"""SMAC's maps in StarCraft II itself, through pysc2.

- :class:`SC2Games`: many games at once, which replace those that are lost;
- :class:`GameProcess`: one of them and the worker that plays it; :class:`GameLost`: its end;
- :func:`check_installation`: where the game and its maps are expected;
- :func:`register_messages`: pysc2 under today's protobuf.

In the workers, ``worker.py`` does as it is told and ``game.py`` plays; they are told, and tell, by
means of ``channel.py``.
"""

from sipo_trl.envs.smac.sc2.games import SC2Games
from sipo_trl.envs.smac.sc2.installation import check_installation
from sipo_trl.envs.smac.sc2.messages import register_messages
from sipo_trl.envs.smac.sc2.process import GameLost, GameProcess

__all__ = [
    "GameLost",
    "GameProcess",
    "SC2Games",
    "check_installation",
    "register_messages",
]
