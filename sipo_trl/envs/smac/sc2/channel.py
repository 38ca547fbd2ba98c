"""What the client and the worker of a game exchange; both import it, so it keeps to numpy.

Units and actions stand in memory that all processes map; a socket per game carries one command at
a time and its receipt.
"""

import mmap
import os
import struct
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

COMMAND = struct.Struct("<Bq")  # which one, and its argument
STEP, BEGIN, CREATE, QUIT = range(4)
RECEIPT = b"."
# The columns of a unit.
HEALTH, SHIELD, COOLDOWN, X, Y = range(5)
VERSION_BYTES = 32


@dataclass(frozen=True, kw_only=True)
class GameSettings:
    """All that a worker has to know of its game.

    Attributes:
        index: of the game.
        num_games: how many there are.
        map_name: of a SMAC map.
        races: of allies and enemies.
        num_allies: how many units the agents control: A.
        num_enemies: how many units they fight: E.
        size: number of the map's cells along each side.
        move_amount: how far a move is ordered.
        moves: the direction of each, the actions from 2 on.
        loops: game loops per step.
        seed: of the game.
        version: which of the installed games to start, such as ``"4.10"``; the newest if ``None``.
        replay_dir: where the replay goes when the game ends.
    """

    index: int
    num_games: int
    map_name: str
    races: tuple[str, str]
    num_allies: int
    num_enemies: int
    size: int
    move_amount: float
    moves: tuple[tuple[float, float], ...]
    loops: int
    seed: int
    version: str | None
    replay_dir: str | None


def map_arrays(descriptor: int, settings: GameSettings) -> dict[str, NDArray]:
    """The memory of all games, by name.

    ``action`` [N, A] is the client's to write; ``units`` [N, A + E, 5], ``ground`` [N, y, x] and
    the game's ``version`` [N] are the workers'.

    Args:
        descriptor: of the memory, which becomes as large as it has to be.
        settings: of any of the games.

    Examples:
        >>> settings = GameSettings(
        ...     index=0, num_games=3, map_name="2m_vs_1z", races=("Terran", "Protoss"),
        ...     num_allies=2, num_enemies=1, size=32, move_amount=2, moves=((0, 1),), loops=8,
        ...     seed=0, version=None, replay_dir=None,
        ... )
        >>> map_arrays(os.memfd_create("arrays"), settings)["units"].shape
        (3, 3, 5)
    """
    columns = {
        "action": (np.int64, (settings.num_allies,)),
        "units": (np.float32, (settings.num_allies + settings.num_enemies, 5)),
        "ground": (np.bool_, (settings.size, settings.size)),
        "version": (f"S{VERSION_BYTES}", ()),
    }
    layouts = [np.dtype((dtype, (settings.num_games, *shape))) for dtype, shape in columns.values()]
    os.ftruncate(descriptor, sum(layout.itemsize for layout in layouts))
    memory, arrays, start = mmap.mmap(descriptor, 0), {}, 0
    for name, layout in zip(columns, layouts, strict=True):
        arrays[name] = np.ndarray(layout.shape, layout.base, memory, start)
        start += layout.itemsize
    return arrays
