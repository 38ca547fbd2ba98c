"""A double of StarCraft II: the protocol of the game, with the embedded engine behind it.

- :class:`Installation`: a folder that looks like the game's, to be SC2PATH;
- :class:`Battle`: what answers the requests of one client;
- ``executable.py``: what is started in the game's stead.
"""

from double.battle import Battle
from double.installation import Installation

__all__ = ["Battle", "Installation"]
