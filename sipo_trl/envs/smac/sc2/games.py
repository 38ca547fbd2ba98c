"""Many games of StarCraft II at once."""

import logging
import os
import tempfile
import time
import weakref
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from sipo_trl.envs.smac.battle_map import SIZE, MapSpec
from sipo_trl.envs.smac.sc2 import channel
from sipo_trl.envs.smac.sc2.installation import check_installation
from sipo_trl.envs.smac.sc2.process import GameLost, GameProcess
from sipo_trl.envs.smac.snapshot import Side
from sipo_trl.envs.smac.view import MOVES

MOVE_AMOUNT = 2.0
LOOPS = 8
# So often in a row is bad luck; more often, something is wrong.
PATIENCE = 3
_logger = logging.getLogger(__name__)


class SC2Games:
    """N games of one SMAC map, each in a process of its own beside its worker's.

    A game that ends, hangs, closes its connection or sends what makes no sense is ended and
    another one takes its place: that is logged and counted, and costs the episode.

    Args:
        spec: the map.

    Keyword Args:
        num_games: N.
        seed: decides the seed of each game.
        version: which of the installed games to start, such as ``"4.10"``; the newest if ``None``.
        replay_dir: where each game leaves its replay when it is closed; nowhere if ``None``.
        timeout: seconds without an answer after which a game counts as hanging.
        start_timeout: the same while a game starts.

    Attributes:
        units: health, shield, cooldown, x and y of allies and enemies [N, A + E, 5], as they are
            now.
        lost: how often each game was lost [N].

    Raises:
        ModuleNotFoundError: if pysc2 is missing.
        FileNotFoundError: if the game or the map is missing.
        GameLost: if a game does not start, or is lost several times in a row.
    """

    def __init__(
        self,
        spec: MapSpec,
        *,
        num_games: int,
        seed: int,
        version: str | None = None,
        replay_dir: str | Path | None = None,
        timeout: float = 60.0,
        start_timeout: float = 300.0,
    ) -> None:
        check_installation(spec.name)
        self.spec, self.timeout, self.start_timeout = spec, timeout, start_timeout
        self._settings = channel.GameSettings(
            index=0,
            num_games=num_games,
            map_name=spec.name,
            races=(spec.allies[0].race, spec.enemies[0].race),
            num_allies=spec.num_allies,
            num_enemies=spec.num_enemies,
            size=SIZE,
            move_amount=MOVE_AMOUNT,
            moves=MOVES,
            loops=LOOPS,
            seed=seed,
            version=version,
            replay_dir=None if replay_dir is None else str(Path(replay_dir).absolute()),
        )
        resources = ExitStack()
        self._release = weakref.finalize(self, resources.close)
        self._memory = os.memfd_create("arrays")
        resources.callback(os.close, self._memory)
        self._temporary = resources.enter_context(tempfile.TemporaryDirectory(prefix="sipo-sc2-"))
        self._arrays = channel.map_arrays(self._memory, self._settings)
        self._action = torch.from_numpy(self._arrays["action"])
        self.units = torch.from_numpy(self._arrays["units"])
        self.lost, self._in_a_row = [0] * num_games, [0] * num_games
        self._games = [self._start(index) for index in range(num_games)]
        self._starting = set(range(num_games))
        try:
            for index in range(num_games):
                self._greet(index)
        except BaseException:
            self._end()
            raise
        _logger.info("StarCraft II %s plays %s.", self.versions[0], spec.name)

    @property
    def versions(self) -> list[str]:
        """Of the games, as they say themselves."""
        return [version.decode() for version in self._arrays["version"].tolist()]

    @property
    def sides(self) -> tuple[Side, Side]:
        """Allies and enemies as they are now."""
        allies, enemies = self.units.clone().split([self.spec.num_allies, self.spec.num_enemies], 1)
        return _side(allies), _side(enemies)

    def seed(self, seed: int) -> None:
        """Creates all games anew, with other seeds; :meth:`begin` has to follow."""
        self._settings = replace(self._settings, seed=seed)
        self._replace(self._tell(channel.CREATE, range(len(self._games))))

    def begin(self, games: Iterable[int]) -> None:
        """Begins an episode in some of the games."""
        games = list(games)
        for index in set(games) - self._starting:
            self._in_a_row[index] = 0  # for it has come to the end of an episode
        while games:
            lost = self._tell(channel.BEGIN, games)
            self._replace(lost)
            games = list(lost)

    def step(self, action: Tensor, games: Iterable[int]) -> list[int]:
        """Lets some of the games go on for 8 loops; ``units`` shows what came of it.

        Args:
            action: what the agents of all games do [N, A].
            games: which ones go on.

        Returns:
            The games that were lost. Their units are as they were before, and :meth:`begin` has
            to follow.
        """
        before = self.units.clone()
        self._action.copy_(action)
        lost = self._tell(channel.STEP, games)
        self._replace(lost)
        self.units[list(lost)] = before[list(lost)]
        return list(lost)

    def close(self) -> None:
        """Ends all games, after their replays were saved if that is wanted."""
        if self._release.alive:
            self._tell(channel.QUIT, set(range(len(self._games))) - self._starting)
            self._end()

    def _start(self, index: int) -> GameProcess:
        settings = replace(self._settings, index=index, seed=self._seed_of(index))
        return GameProcess(settings, self._memory, temporary=self._temporary)

    def _seed_of(self, index: int) -> int:
        """Another one for each game, and for each that takes the place of a lost one."""
        return self._settings.seed + index + self.lost[index] * self._settings.num_games

    def _greet(self, index: int) -> None:
        """Waits for a game's start."""
        self._games[index].wait(self.start_timeout)
        self._starting.remove(index)
        strange = int((self._arrays["ground"][index] != self.spec.walkable().numpy()).sum())
        if strange:
            _logger.warning(
                "The ground of %s differs from the game's in %d cells: agents may be offered "
                "moves that the game refuses, or the other way round.",
                self.spec.name,
                strange,
            )

    def _tell(self, command: int, games: Iterable[int]) -> dict[int, GameLost]:
        """Has games do something, all at once; returns those that were lost over it, and why."""
        games, lost = list(games), {}
        try:
            for index in self._starting.intersection(games):
                try:
                    self._greet(index)
                except GameLost as error:
                    lost[index] = error
            games = [index for index in games if index not in lost]
            for index in games:
                self._games[index].send(command, self._seed_of(index))
            deadline = time.monotonic() + self.timeout
            for index in games:
                try:
                    self._games[index].wait(deadline - time.monotonic())
                except GameLost as error:
                    lost[index] = error
        except BaseException:
            # Answers that are still to come would be taken for those of the next command.
            self._end()
            raise
        return lost

    def _replace(self, lost: dict[int, GameLost]) -> None:
        """Starts other games in the places of lost ones."""
        for index, error in lost.items():
            self.lost[index] += 1
            self._in_a_row[index] += 1
            if self._in_a_row[index] > PATIENCE:
                self._end()
                raise GameLost(
                    f"Game {index} was lost {self._in_a_row[index]} times in a row, without an "
                    f"episode in between, the last time because: {error}"
                ) from error
            _logger.warning("Game %d was lost, and its episode with it: %s", index, error)
            self._games[index] = self._start(index)
            self._starting.add(index)

    def _end(self) -> None:
        for game in self._games:
            game.close()
        self._release()


def _side(units: Tensor) -> Side:
    return Side(
        health=units[..., channel.HEALTH],
        shield=units[..., channel.SHIELD],
        cooldown=units[..., channel.COOLDOWN],
        position=units[..., channel.X :],
    )
