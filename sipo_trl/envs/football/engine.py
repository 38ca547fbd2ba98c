"""gfootball's engine, which takes up any match where it was left.

An engine takes half a second to start and 50 MB, and a match can be put into it in a tenth of a
millisecond: so a few engines play all matches of a worker, in turns. What the engine saves of a
match is not all that its course depends on:

- Which team moves first, and how both line up, are those of the match that the engine has *begun*
  last. (By the first, players look around at other moments.) Whoever puts a match into an engine
  has to see to that: it should have begun only matches with the same team in front and the same
  line-up.
- Where the ball lay when that match began: the engine takes no other. Nothing depends on it.
- From which end of the pitch players remember the ball. An engine with less to remember than a
  match that is put into it mistakes that, if the right team moves first.
"""

from typing import Any

import numpy as np

MEMORIES = 3
"""Pictures of the last tenths of a second that players of the engine remember."""
FIRST_BALL = slice(2524, 2536)
"""Where a saved match says where the ball first lay."""
REVERSED = 2580
"""Where it says that the right team moves first."""


class Engine:
    """Plays one match, and goes on with any other with the same team in front and line-up.

    Args:
        configuration: gfootball's description of a match, of the scenario of all others.
        size: width and height of pictures; ``None`` for an engine that draws none.
    """

    def __init__(self, configuration: Any, size: tuple[int, int] | None = None) -> None:
        import gfootball_engine as library

        self.game = library.GameEnv()
        settings = self.game.game_config
        settings.physics_steps_per_frame = 10
        if size is not None:
            settings.render = True
            settings.render_resolution_x, settings.render_resolution_y = size
        self.game.start_game()
        self.game.state = library.GameState.game_running
        self._remembering = self._play_a_little(configuration)
        self.begin(configuration)

    def begin(self, configuration: Any) -> Any:
        """Begins a match; returns what is seen as soon as the ball is in play."""
        self.game.reset(configuration, False)
        self._first_ball = self._saved()[FIRST_BALL]
        return self._until_in_play()

    def step(self) -> tuple[Any, Any]:
        """Goes on by a tenth of a second.

        Returns:
            What is seen at once, and what is seen as soon as the ball is in play.
        """
        self.game.step()
        seen = self.game.get_info()
        return seen, seen if seen.is_in_play else self._until_in_play()

    def save(self) -> np.ndarray:
        """The match, in bytes."""
        state = self._saved().copy()
        state[FIRST_BALL] = 0  # that of another match, perhaps
        return state

    def load(self, state: np.ndarray) -> None:
        """Puts a saved match in place of the present one."""
        if state[REVERSED]:
            self._put(self._remembering)
        self._put(state)

    def _play_a_little(self, configuration: Any) -> np.ndarray:
        """A match with something to remember, in which the left team moves first."""
        reverse = configuration.reverse_team_processing
        configuration.reverse_team_processing = False
        self.begin(configuration)
        configuration.reverse_team_processing = reverse
        for _ in range(MEMORIES):
            self.game.step()
        return self.save()

    def _until_in_play(self) -> Any:
        while not (info := self.game.get_info()).is_in_play:
            self.game.step()
        return info

    def _saved(self) -> np.ndarray:
        return np.frombuffer(self.game.get_state(b""), np.uint8)

    def _put(self, state: np.ndarray) -> None:
        state = state.copy()
        state[FIRST_BALL] = self._first_ball
        self.game.set_state(state.tobytes())
