"""What stands behind the executable: the game's interface, with the embedded engine in it."""

from pathlib import Path

import numpy as np
import torch

from sipo_trl.envs.smac import EmbeddedBackend, Snapshot, load_map
from sipo_trl.envs.smac.sc2.messages import register_messages
from sipo_trl.envs.smac.view import MOVES

register_messages()
from s2clientprotocol import common_pb2, error_pb2, raw_pb2, sc2api_pb2  # noqa: E402

BUILD, VERSION = 75689, "4.10.0"
# SMAC's maps have units of their own for the agents, with numbers beyond those of the game.
FIRST_OWN_TYPE = 1970
ALLY, ENEMY, NEUTRAL = 1, 2, 16
STOP, MOVE, ATTACK = 4, 16, 23
LOOPS, MOVE_AMOUNT = 8, 2
MAP_DATA, REPLAY_DATA = b"a map", b"a replay"


class Battle:
    """One game, as the executable's clients see it.

    Args:
        bits_per_pixel: of the picture of the ground: 1, or 8 as in old games.
        plays: the map that stands in the files of all others; each its own if ``None``.
    """

    def __init__(self, *, bits_per_pixel: int = 1, plays: str | None = None) -> None:
        self.bits_per_pixel, self._plays = bits_per_pixel, plays
        self.status = sc2api_pb2.launched
        self.created: list[sc2api_pb2.RequestCreateGame] = []
        self.joined: list[sc2api_pb2.RequestJoinGame] = []
        self._loop = self._generation = 0

    def answer(self, request: sc2api_pb2.Request) -> sc2api_pb2.Response:
        """The response to a request, by the method of the same name."""
        response = sc2api_pb2.Response(id=request.id)
        name = request.WhichOneof("request")
        part = getattr(response, name)
        part.SetInParent()
        getattr(self, f"_{name}")(getattr(request, name), part)
        response.status = self.status
        return response

    def _ping(self, request, response) -> None:
        response.game_version, response.base_build = VERSION, BUILD

    def _create_game(self, request, response) -> None:
        assert request.local_map.map_data == MAP_DATA
        assert not request.realtime
        self.created.append(request)
        self.spec = load_map(self._plays or Path(request.local_map.map_path).stem)
        self.status = sc2api_pb2.init_game

    def _join_game(self, request, response) -> None:
        assert request.options.raw
        self.joined.append(request)
        self._engine = EmbeddedBackend(self.spec, copies=1)
        self._engine.set_seed(self.created[-1].random_seed)
        self._respawn()
        self.status, response.player_id = sc2api_pb2.in_game, ALLY

    def _game_info(self, request, response) -> None:
        ground = self.spec.walkable().numpy()
        image = response.start_raw.pathing_grid
        image.size.y, image.size.x = ground.shape
        image.bits_per_pixel = self.bits_per_pixel
        if self.bits_per_pixel == 1:
            image.data = np.packbits(ground).tobytes()
        else:
            image.data = np.where(ground[::-1], 0, 255).astype(np.uint8).tobytes()

    def _observation(self, request, response) -> None:
        units = [raw_pb2.Unit(owner=NEUTRAL, tag=1, unit_type=365, health=1)]
        units += self._units(ENEMY)
        units += self._units(ALLY)[::-1]  # whose order is for the client to find
        response.observation.game_loop = self._loop
        response.observation.raw_data.units.extend(units)

    def _action(self, request, response) -> None:
        for action in request.actions:
            command = action.action_raw.unit_command
            for tag in command.unit_tags:
                self._action_of[0, self._slot(tag)] = self._understand(command, tag)
            response.result.append(error_pb2.Success)

    def _step(self, request, response) -> None:
        self._loop += request.count
        if not (self._tags_alive[ALLY] or self._tags_alive[ENEMY]):
            self._respawn()
        elif request.count == LOOPS:  # the engine knows no smaller steps
            self._engine.play(self._action_of)
            self._show(self._engine.snapshot())

    def _debug(self, request, response) -> None:
        for command in request.debug:
            for alive in self._tags_alive.values():
                alive.difference_update(command.kill_unit.tag)

    def _save_replay(self, request, response) -> None:
        response.data = REPLAY_DATA

    def _respawn(self) -> None:
        """What a trigger of the map does once nobody is left."""
        self._generation += 1
        self._engine.start()
        self._show(self._engine.snapshot())

    def _show(self, snapshot: Snapshot) -> None:
        """The units as they are from now on; they have no orders then."""
        self._sides = {ALLY: snapshot.allies, ENEMY: snapshot.enemies}
        self._tags_alive = {
            owner: {self._tag(owner, slot) for slot in side.alive[0].nonzero().flatten().tolist()}
            for owner, side in self._sides.items()
        }
        self._action_of = torch.zeros(1, self.spec.num_allies, dtype=torch.int64)

    def _units(self, owner: int) -> list[raw_pb2.Unit]:
        """A side's living units, in the order of their places."""
        side = self._sides[owner]
        kinds = self.spec.allies if owner == ALLY else self.spec.enemies
        own_types = {kind: FIRST_OWN_TYPE + n for n, kind in enumerate(dict.fromkeys(kinds))}
        return [
            raw_pb2.Unit(
                owner=owner,
                tag=self._tag(owner, slot),
                unit_type=own_types[kind] if owner == ALLY else kind.type_id,
                pos=common_pb2.Point(x=x, y=y),
                health=health,
                shield=shield,
                weapon_cooldown=cooldown,
            )
            for slot, (kind, (x, y), health, shield, cooldown) in enumerate(
                zip(
                    kinds,
                    side.position[0].tolist(),
                    side.health[0].tolist(),
                    side.shield[0].tolist(),
                    side.cooldown[0].tolist(),
                    strict=True,
                )
            )
            if self._tag(owner, slot) in self._tags_alive[owner]
        ]

    def _tag(self, owner: int, slot: int) -> int:
        """Never the same again, as in the game; nor a small number."""
        return (self._generation << 32) + (owner << 16) + slot

    def _slot(self, tag: int) -> int:
        return tag & 0xFFFF

    def _understand(self, command: raw_pb2.ActionRawUnitCommand, tag: int) -> int:
        """The number of the action that a unit was ordered to."""
        assert tag in self._tags_alive[ALLY]
        if command.ability_id == STOP:
            return 1
        if command.ability_id == ATTACK:
            assert command.target_unit_tag in self._tags_alive[ENEMY]
            return 2 + len(MOVES) + self._slot(command.target_unit_tag)
        assert command.ability_id == MOVE
        target = command.target_world_space_pos
        here = self._sides[ALLY].position[0, self._slot(tag)]
        targets = (here + MOVE_AMOUNT * torch.tensor(MOVES)).tolist()
        return 2 + targets.index([target.x, target.y])
