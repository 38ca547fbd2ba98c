"""One game of StarCraft II, played through pysc2."""

import ctypes
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sipo_trl.envs.smac.sc2.channel import GameSettings
from sipo_trl.envs.smac.sc2.messages import register_messages

register_messages()
# Only now can these be imported.
from absl import flags  # noqa: E402
from pysc2 import run_configs  # noqa: E402
from pysc2.lib import sc_process  # noqa: E402
from s2clientprotocol import common_pb2, debug_pb2, raw_pb2, sc2api_pb2  # noqa: E402

# Who owns a unit, and what it can be told to do, in the game's numbers.
ALLY, ENEMY = 1, 2
STOP, MOVE, ATTACK = 4, 16, 23
# The map's trigger needs two loops to bring the units back; some more do no harm.
RESPAWN_LOOPS, RESPAWN_PATIENCE = 2, 100
# Actions before the moves: no-op and stop.
FIRST_MOVE = 2
PR_SET_PDEATHSIG = 1
_prctl = ctypes.CDLL(None).prctl


class Game:
    """A running game on a SMAC map, which it starts and joins.

    Args:
        settings: what to play.
        seed: of all that is drawn.

    Attributes:
        version: of the game, as it says itself.
        ground: which cells can be walked on [y, x].
    """

    def __init__(self, settings: GameSettings, *, seed: int) -> None:
        self.settings = settings
        flags.FLAGS(["sipo"])  # pysc2 reads its own settings from there
        self._config = _choose(settings.version)
        self._config.tmp_dir = settings.temporary
        version = self._config.version
        folder = Path(self._config.data_dir, "Versions", f"Base{version.build_version:05d}")
        self._process = _Process(self._config, str(folder / "SC2_x64"), version)
        self._controller = self._process.controller
        self.version: str = self._controller.ping().game_version
        self._tags: list[int] = []
        self._create(seed)
        self.ground = _read_ground(self._controller.game_info().start_raw.pathing_grid)
        if self.ground.shape != (settings.size, settings.size):
            sys.exit(
                f"{settings.map_name} has {self.ground.shape} cells instead of {settings.size} x "
                f"{settings.size}: install SMAC's own maps."
            )

    def begin(self, units: NDArray, *, seed: int) -> None:
        """Begins an episode; the units get their places in the order of SMAC.

        Args:
            units: where to write them [A + E, 5].
            seed: of the game; if it is another one than before, the game is created anew.
        """
        if seed != self._seed:
            self._create(seed)
        elif self._tags:
            tags = [unit.tag for unit in self._observe()]
            kill = debug_pb2.DebugCommand(kill_unit=debug_pb2.DebugKillUnit(tag=tags))
            self._controller.debug(kill)
            # A trigger of the map brings everybody back once nobody is left.
            self._controller.step(RESPAWN_LOOPS)
        allies, enemies = self._await_units()
        allies.sort(key=lambda unit: (unit.unit_type, unit.pos.x, unit.pos.y))
        self._tags = [unit.tag for unit in allies + enemies]
        self._write(allies + enemies, units)

    def step(self, action: NDArray, units: NDArray) -> None:
        """Gives the allies their orders and lets the battle go on.

        Args:
            action: what each of the allies is to do [A].
            units: as they were left by the last call [A + E, 5]; to be updated.
        """
        orders = [
            sc2api_pb2.Action(action_raw=raw_pb2.ActionRaw(unit_command=command))
            for command in self._commands(action, units)
        ]
        if orders:
            self._controller.actions(sc2api_pb2.RequestAction(actions=orders))
        self._controller.step(self.settings.loops)
        self._write(self._observe(), units)

    def quit(self) -> None:
        """Saves a replay of all since the game was created, if wanted, and ends the game."""
        if self.settings.replay_dir is not None:
            data = self._controller.save_replay()
            prefix = f"{self.settings.map_name}_{self._seed}"
            self._config.save_replay(data, self.settings.replay_dir, prefix)
        self._process.close()

    def _create(self, seed: int) -> None:
        """Creates the game on the map and joins it."""
        name = str(Path("SMAC_Maps", f"{self.settings.map_name}.SC2Map"))
        create = sc2api_pb2.RequestCreateGame(
            # The path is shown in replays; what is played is the data.
            local_map=sc2api_pb2.LocalMap(map_path=name, map_data=self._config.map_data(name)),
            realtime=False,
            random_seed=seed % 2**32,
        )
        ally, enemy = (common_pb2.Race.Value(race) for race in self.settings.races)
        create.player_setup.add(type=sc2api_pb2.Participant)
        create.player_setup.add(
            type=sc2api_pb2.Computer, race=enemy, difficulty=sc2api_pb2.VeryHard
        )
        self._controller.create_game(create)
        options = sc2api_pb2.InterfaceOptions(raw=True, score=False)
        self._controller.join_game(sc2api_pb2.RequestJoinGame(race=ally, options=options))
        self._seed, self._tags = seed, []

    def _await_units(self) -> tuple[list[Any], list[Any]]:
        """Allies and enemies, once all are there."""
        settings = self.settings
        for _ in range(RESPAWN_PATIENCE):
            alive = self._observe()
            allies = [unit for unit in alive if unit.owner == ALLY]
            enemies = [unit for unit in alive if unit.owner == ENEMY]
            if len(allies) == settings.num_allies and len(enemies) == settings.num_enemies:
                return allies, enemies
            self._controller.step(1)
        sys.exit(
            f"{settings.map_name} has {len(allies)} allies and {len(enemies)} enemies instead of "
            f"{settings.num_allies} and {settings.num_enemies}: install SMAC's own maps."
        )

    def _commands(self, action: NDArray, units: NDArray) -> Iterator[raw_pb2.ActionRawUnitCommand]:
        """The orders, without any for those who do nothing."""
        moves, first_enemy = self.settings.moves, self.settings.num_allies
        first_attack = FIRST_MOVE + len(moves)
        for number, unit, tag in zip(action.tolist(), units, self._tags, strict=False):
            order: dict[str, Any]
            if number >= first_attack:
                target = self._tags[first_enemy + number - first_attack]
                order = {"ability_id": ATTACK, "target_unit_tag": target}
            elif number >= FIRST_MOVE:
                x, y = (unit[-2:] + np.asarray(moves[number - FIRST_MOVE], unit.dtype)).tolist()
                place = common_pb2.Point2D(x=x, y=y)
                order = {"ability_id": MOVE, "target_world_space_pos": place}
            elif number == 1:
                order = {"ability_id": STOP}
            else:
                continue
            yield raw_pb2.ActionRawUnitCommand(unit_tags=[tag], **order)

    def _observe(self) -> list[Any]:
        """All living units."""
        return [
            unit
            for unit in self._controller.observe().observation.raw_data.units
            if unit.owner in (ALLY, ENEMY)
        ]

    def _write(self, alive: Iterable[Any], units: NDArray) -> None:
        """Updates the units; the dead stay where they were."""
        seen = {unit.tag: unit for unit in alive}
        units[:, :-2] = 0
        for row, tag in zip(units, self._tags, strict=True):
            if tag in seen:
                unit = seen[tag]
                row[:] = unit.health, unit.shield, unit.weapon_cooldown, unit.pos.x, unit.pos.y


class _Process(sc_process.StarcraftProcess):
    """The game's process, which ends with the one that started it, however that ends."""

    def _launch(self, run_config: Any, args: list[str], **_: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            args,
            cwd=run_config.cwd,
            env=run_config.env,
            preexec_fn=lambda: _prctl(PR_SET_PDEATHSIG, signal.SIGKILL),
        )


def _choose(version: str | None) -> Any:
    """What pysc2 knows of an installed game."""
    config = run_configs.get()
    installed = sorted(config.get_versions())
    if version is not None:
        name = f"{version}.0" if version.count(".") == 1 else version
        if name not in installed:
            sys.exit(
                f"version={version!r} of StarCraft II is not installed in {config.data_dir}: "
                f"choose one of {installed}, or install it."
            )
        config = run_configs.get(version=name)
    return config


def _read_ground(image: Any) -> NDArray:
    """Which cells can be walked on [y, x]; from below, as the game's coordinates."""
    shape, data = (image.size.y, image.size.x), np.frombuffer(image.data, np.uint8)
    if image.bits_per_pixel == 1:
        return np.unpackbits(data)[: shape[0] * shape[1]].reshape(shape).astype(bool)
    # Games before 4.7 or so: a byte per cell, 0 if free, and from above.
    return (data == 0).reshape(shape)[::-1]
