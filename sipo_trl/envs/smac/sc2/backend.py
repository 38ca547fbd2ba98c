"""Battles that StarCraft II itself plays."""

import logging
import shutil
import tempfile
import weakref
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from sipo_trl.envs.smac.backend import BattleBackend
from sipo_trl.envs.smac.battle_map import SIZE, MapSpec
from sipo_trl.envs.smac.engine import LOOPS
from sipo_trl.envs.smac.sc2 import channel
from sipo_trl.envs.smac.sc2.installation import check_installation
from sipo_trl.envs.smac.sc2.worker import GameWorker
from sipo_trl.envs.smac.snapshot import NO_ACTION, Side, Snapshot
from sipo_trl.envs.smac.view import MOVES
from sipo_trl.envs.workers import WorkerPool

MOVE_AMOUNT = 2
# So often in a row is bad luck; more often, something is wrong.
PATIENCE = 3
_logger = logging.getLogger(__name__)


class SC2Backend(BattleBackend):
    """Games of StarCraft II, each in a process of its own beside that of its worker.

    A game that ends, hangs, closes its connection or sends what makes no sense is ended and
    another takes its place: that is logged and counted, and the battle is lost where it stood. The
    game cannot save its state: ``load_state_dict`` loses all battles too. No game outlives this
    object, or the process that holds it.

    Args:
        spec: the map.

    Keyword Args:
        copies: the number B of games.
        device: where snapshots live.
        version: which of the installed games to start, such as ``"4.10"``; the newest if ``None``.
        replay_dir: where each game leaves its replay when it is closed; nowhere if ``None``.
        timeout: seconds without an answer, also at the start, after which a game counts as
            hanging.

    Attributes:
        pool: the workers.
        versions: of the games, as they say themselves.
        breakdowns: how many games in each copy's place were replaced so far [B].

    Raises:
        ModuleNotFoundError: if pysc2 is missing.
        FileNotFoundError: if the game or the map is missing.
        RuntimeError: if a game does not start, or breaks down several times in a row.

    Examples:
        >>> from sipo_trl.envs import SMACEnv
        >>> env = SMACEnv("2m_vs_1z", batch_size=[8], backend="sc2")  # doctest: +SKIP
        >>> env.battles.versions[0]  # doctest: +SKIP
        '4.10.0'
    """

    units: Tensor
    last_action: Tensor
    broken: Tensor
    seeds: Tensor

    def __init__(
        self,
        spec: MapSpec,
        *,
        copies: int,
        device: torch.device | str | None = None,
        version: str | None = None,
        replay_dir: str | Path | None = None,
        timeout: float = 120.0,
    ) -> None:
        super().__init__(spec, copies=copies, device=device)
        check_installation(spec.name)
        if replay_dir is not None:
            # Not in the games' processes, where pysc2 would make it in all of them at once.
            Path(replay_dir).mkdir(parents=True, exist_ok=True)
        temporary = tempfile.mkdtemp(prefix="sipo-sc2-")
        self._clean = weakref.finalize(self, shutil.rmtree, temporary, ignore_errors=True)
        settings = channel.GameSettings(
            map_name=spec.name,
            races=(spec.allies[0].race, spec.enemies[0].race),
            num_allies=spec.num_allies,
            num_enemies=spec.num_enemies,
            size=SIZE,
            moves=tuple((MOVE_AMOUNT * x, MOVE_AMOUNT * y) for x, y in MOVES),
            loops=LOOPS,
            version=version,
            replay_dir=None if replay_dir is None else str(Path(replay_dir).absolute()),
            temporary=temporary,
        )
        self.pool = WorkerPool(
            GameWorker,
            copies=copies,
            workers=copies,
            layout=settings.layout,
            options=asdict(settings),
            timeout=timeout,
        )
        self.breakdowns = np.zeros(copies, int)
        self._in_a_row = np.zeros(copies, int)
        self._known = np.zeros(copies, bool)  # games that stand where the units say
        self._make_buffers(device)
        self._launch()

    def _make_buffers(self, device: torch.device | str | None) -> None:
        units = torch.from_numpy(self.pool.arrays["units"]).to(device, copy=True)
        self.register_buffer("units", units)
        action = torch.full_like(units[:, : self.spec.num_allies, 0], NO_ACTION, dtype=torch.int64)
        self.register_buffer("last_action", action)
        broken = torch.zeros(self.copies, 1, dtype=torch.bool, device=device)
        self.register_buffer("broken", broken)
        self.register_buffer("seeds", torch.arange(self.copies))
        self.register_load_state_dict_post_hook(SC2Backend._forget)

    def _launch(self) -> None:
        failed = self.pool.run(channel.LAUNCH, np.ones(self.copies, bool))
        if failed.any():
            self.close()
            words = self.pool.last_words[int(failed.argmax())]
            raise RuntimeError(f"StarCraft II did not start; it ended with {words}")
        _logger.info("StarCraft II %s plays %s.", self.versions[0], self.spec.name)

    @property
    def versions(self) -> list[str]:
        """Of the games, as they say themselves."""
        return [version.decode() for version in self.pool.arrays["version"].tolist()]

    def set_seed(self, seed: int) -> None:
        """Gives each game a seed of its own, for the battles from the next start on."""
        self.seeds = seed + torch.arange(self.copies)

    def start(self, chosen: Tensor | None = None) -> None:
        """Begins new battles where chosen [B, 1], bool; in all if ``None``."""
        starting = self._mask(chosen)
        begun = torch.from_numpy(starting).to(self.broken.device)
        self._in_a_row[starting & self._known] = 0  # these have come to the end of a battle
        left = starting
        while left.any():
            self.pool.arrays["seed"][:] = self.seeds
            left = self.pool.run(channel.BEGIN, left)
            self._count(left)
        self._known |= starting
        self._update(begun, torch.full_like(self.last_action, NO_ACTION))
        self.broken = self.broken & ~begun.unsqueeze(-1)

    def play(self, action: Tensor, moving: Tensor | None = None) -> None:
        """Goes on by one step, where moving [B, 1]; lost battles stay as they are."""
        wanted = self._mask(moving)
        playing = wanted & self._known
        self.pool.arrays["action"][:] = action.cpu()
        failed = self.pool.run(channel.STEP, playing)
        self._known &= ~failed
        self._count(failed)
        device = self.broken.device
        self._update(torch.from_numpy(playing & ~failed).to(device), action)
        broken = torch.from_numpy(wanted & ~self._known).to(device)
        self.broken = self.broken | broken.unsqueeze(-1)

    def snapshot(self) -> Snapshot:
        """Where the battles stand."""
        sides = self.units.split([self.spec.num_allies, self.spec.num_enemies], 1)
        allies, enemies = map(_side, sides)
        return Snapshot(allies, enemies, self.last_action)

    def lost(self) -> Tensor:
        """Which battles broke off with their games [B, 1]."""
        return self.broken.clone()

    def walkable(self) -> Tensor:
        """Where each ally may be sent [A, y, x]: the game's own ground; climbers on cliffs too."""
        ground = torch.from_numpy(self.pool.arrays["ground"][0])
        cliffs = self.spec.walkable(climbs=True) & ~self.spec.walkable()
        climbers = torch.tensor([ally.climbs for ally in self.spec.allies])
        return ground | cliffs & climbers[:, None, None]

    def close(self) -> None:
        """Ends all games, after their replays were saved if that is wanted."""
        if not self.pool.closed:
            failed = self.pool.run(channel.QUIT, np.ones(self.copies, bool))
            for copy in failed.nonzero()[0]:
                last = self.pool.last_words[copy].splitlines()[-1]
                _logger.warning("Game %d did not end as it should: %s", copy, last)
            self.pool.close()
        self._clean()

    def _mask(self, chosen: Tensor | None) -> np.ndarray:
        if chosen is None:
            return np.ones(self.copies, bool)
        return chosen.flatten().cpu().numpy()

    def _update(self, chosen: Tensor, action: Tensor) -> None:
        """Takes over what some games [B] show."""
        units = torch.from_numpy(self.pool.arrays["units"]).to(self.units.device, copy=True)
        self.units = torch.where(chosen[:, None, None], units, self.units)
        self.last_action = torch.where(chosen[:, None], action, self.last_action)

    def _count(self, failed: np.ndarray) -> None:
        """Counts games that broke down, and gives those in their places seeds of their own."""
        self.breakdowns += failed
        self._in_a_row += failed
        self.seeds = self.seeds + self.copies * torch.from_numpy(failed)
        for copy in failed.nonzero()[0]:
            words = self.pool.last_words[copy]
            if self._in_a_row[copy] > PATIENCE:
                self.pool.close()
                raise RuntimeError(
                    f"Game {copy} broke down {self._in_a_row[copy]} times without a whole episode "
                    f"in between; it ended with {words}"
                )
            first, *_, last = words.splitlines()
            _logger.warning("Game %d broke down and is replaced: %s %s", copy, first, last)

    def _forget(self, _: object) -> None:
        """After other buffers were loaded: no game knows them, and none is to be played again."""
        self._known[:] = False
        self.seeds = self.seeds + self.copies


def _side(units: Tensor) -> Side:
    return Side(
        health=units[..., channel.HEALTH],
        shield=units[..., channel.SHIELD],
        cooldown=units[..., channel.COOLDOWN],
        position=units[..., channel.X :],
    )
