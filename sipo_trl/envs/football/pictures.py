"""What a worker does that draws matches, with the engine's own renderer and without a screen."""

import os

import numpy as np

from sipo_trl.envs.football.engine import Engine
from sipo_trl.envs.football.matches import STATE_BYTES, configuration
from sipo_trl.envs.football.scenario import SCENARIOS

WIDTH, HEIGHT = 480, 272
# The engine's stadium is dark without a graphics card.
BRIGHTNESS = 0.6


def layout() -> dict[str, tuple[str, tuple[int, ...]]]:
    """Type and shape of a match that is to be drawn, and of its picture."""
    return {
        "state": ("u1", (STATE_BYTES,)),
        "length": ("i8", ()),
        "picture": ("u1", (HEIGHT, WIDTH, 3)),
    }


class Pictures:
    """Draws matches as they stand.

    Args:
        arrays: those of :func:`layout`, one row per match.

    Keyword Args:
        scenario: that of the matches.
    """

    def __init__(self, arrays: dict[str, np.ndarray], *, scenario: str) -> None:
        os.environ.setdefault("SDL_VIDEODRIVER", "offscreen")
        self.arrays = arrays
        self._engine = Engine(configuration(SCENARIOS[scenario], seed=0), (WIDTH, HEIGHT))

    def run(self, command: int, copy: int) -> None:
        """Draws one match."""
        self._engine.load(self.arrays["state"][copy, : self.arrays["length"][copy]])
        # The camera of the first picture stands where it was before.
        self._engine.game.render(False)
        self._engine.game.render(True)
        frame = np.frombuffer(self._engine.game.get_frame(), np.uint8).reshape(HEIGHT, WIDTH, 3)
        picture = 255 * (frame[::-1] / 255) ** BRIGHTNESS  # OpenGL counts from below
        self.arrays["picture"][copy] = picture.round()

    def idle(self, own: range) -> bool:
        """Has nothing to prepare."""
        return False
