"""What the environment and the workers of its games have to know of each other.

Both import it, so it keeps to the standard library.
"""

from dataclasses import dataclass

# What a worker can be told to do.
LAUNCH, BEGIN, STEP, QUIT = range(4)
# The columns of a unit.
HEALTH, SHIELD, COOLDOWN, X, Y = range(5)


@dataclass(frozen=True, kw_only=True)
class GameSettings:
    """What games to play.

    Attributes:
        map_name: of a SMAC map.
        races: of allies and enemies.
        num_allies: how many units the agents control: A.
        num_enemies: how many units they fight: E.
        size: number of the map's cells along each side.
        moves: where each move is ordered to go, from where the unit is.
        loops: game loops per step.
        version: which of the installed games to start, such as ``"4.10"``; the newest if ``None``.
        replay_dir: where replays go when games end; nowhere if ``None``.
        temporary: folder for the games' temporary files.

    Examples:
        >>> settings = GameSettings(
        ...     map_name="2m_vs_1z", races=("Terran", "Protoss"), num_allies=2, num_enemies=1,
        ...     size=32, moves=((0, 2), (0, -2), (2, 0), (-2, 0)), loops=8, version=None,
        ...     replay_dir=None, temporary="/tmp",
        ... )
        >>> settings.layout["units"]
        ('f4', (3, 5))
    """

    map_name: str
    races: tuple[str, str]
    num_allies: int
    num_enemies: int
    size: int
    moves: tuple[tuple[float, float], ...]
    loops: int
    version: str | None
    replay_dir: str | None
    temporary: str

    @property
    def layout(self) -> dict[str, tuple[str, tuple[int, ...]]]:
        """The arrays that are shared, by name.

        ``action`` and ``seed`` are the environment's to write; ``units``, the game's ``version``
        and which cells are ``ground`` [y, x] are the worker's.
        """
        return {
            "action": ("i8", (self.num_allies,)),
            "seed": ("i8", ()),
            "units": ("f4", (self.num_allies + self.num_enemies, 5)),
            "ground": ("?", (self.size, self.size)),
            "version": ("S32", ()),
        }
