"""What runs in the worker process of a game."""

import sys
from typing import TYPE_CHECKING, Any

from sipo_trl.envs.smac.sc2 import channel

if TYPE_CHECKING:
    from sipo_trl.envs.smac.sc2.game import Game


class GameWorker:
    """Plays one game; whatever goes wrong with it ends the process, and another takes its place.

    Args:
        arrays: the game's row of those in :attr:`~sipo_trl.envs.smac.sc2.GameSettings.layout`.
        options: the fields of :class:`~sipo_trl.envs.smac.sc2.GameSettings`.
    """

    def __init__(self, arrays: dict[str, Any], **options: Any) -> None:
        self._arrays, self._settings = arrays, channel.GameSettings(**options)
        self._game: Game | None = None

    def run(self, command: int, copy: int) -> None:
        """Does what the environment asks for."""
        arrays = {name: array[copy] for name, array in self._arrays.items()}
        if command == channel.QUIT:
            if self._game is not None:
                self._game.quit()
            return
        if self._game is None:
            if command == channel.STEP:
                sys.exit("The game has gone with the worker that played it.")
            self._game = self._launch(copy)
        if command == channel.BEGIN:
            self._game.begin(arrays["units"], seed=int(arrays["seed"]))
        elif command == channel.STEP:
            self._game.step(arrays["action"], arrays["units"])

    def idle(self, own: range) -> bool:
        """A game cannot be prepared for the next episode before this one has ended."""
        return False

    def _launch(self, copy: int) -> "Game":
        # Here, because the environment's process imports this file too and is to be left alone.
        from sipo_trl.envs.smac.sc2.game import Game

        game = Game(self._settings, seed=int(self._arrays["seed"][copy]))
        self._arrays["ground"][copy] = game.ground
        self._arrays["version"][copy] = game.version
        return game
