"""The embedded engine: battles as batched tensor operations, without the game."""

from dataclasses import replace

import torch
from torch import Tensor, nn

from sipo_trl.envs.smac.battle import Battle
from sipo_trl.envs.smac.battle_map import FIRST_ATTACK, MapSpec
from sipo_trl.envs.smac.features import _column
from sipo_trl.envs.smac.ground import Ground
from sipo_trl.envs.smac.snapshot import NO_ACTION
from sipo_trl.envs.smac.start import start_places
from sipo_trl.envs.smac.view import MOVES, SIGHT

LOOPS = 8
"""Game loops per step."""
TICK = 4
"""Game loops that are played at once: see ``docs/smac.md`` for what that changes."""
START_NOISE = 0.25
"""How far from its place an enemy may start, along each axis."""
_SHIELD_DELAY, _SHIELD_REGENERATION = 160.0, 0.125
_FIRST_MOVE = 2
_TINY = 1e-6
# Those who chase come a little nearer than their range, so that rounding does not keep them off.
_CONTACT = 0.02


class Engine(nn.Module):
    """Plays battles on one map, loop by loop, all copies at once.

    What it models and what it leaves out is told in ``docs/smac.md``. It has no memory of its own:
    a battle is all there is to know, and the same one always goes on in the same way.

    Args:
        spec: the map.

    Keyword Args:
        tick: game loops that are played at once: 1, 2, 4 or 8. Fewer are more exact and take
            longer.
        device: where battles live.

    Examples:
        >>> from sipo_trl.envs.smac import load_map
        >>> engine = Engine(load_map("3m"))
        >>> battle = engine.start(torch.rand(64, engine.noise_size))
        >>> east = torch.full((64, 3), 4)
        >>> later = engine.step(battle, east)
        >>> (later.position - battle.position)[0, 0, :3].round(decimals=2).tolist()
        [1.12, 1.12, 1.12]
    """

    places: Tensor
    moves: Tensor
    health: Tensor
    shield: Tensor
    armour: Tensor
    cooldown: Tensor
    regeneration: Tensor
    speed: Tensor
    weapon: Tensor
    radius: Tensor
    ally_blow: Tensor
    enemy_blow: Tensor
    hits: Tensor
    splash: Tensor
    follow_through: Tensor
    ally_index: Tensor
    enemy_index: Tensor
    hostile: Tensor

    def __init__(
        self, spec: MapSpec, *, tick: int = TICK, device: torch.device | str | None = None
    ) -> None:
        super().__init__()
        if tick < 1 or LOOPS % tick:
            raise ValueError(f"tick is {tick}: give 1, 2, 4 or 8 of a step's {LOOPS} loops.")
        self.spec, self.allies, self.tick = spec, spec.num_allies, tick
        units = (*spec.allies, *spec.enemies)
        reach = _column(units, "range", device) + _column(units, "radius", device)
        moves = torch.zeros(spec.num_actions, 2)
        moves[_FIRST_MOVE:FIRST_ATTACK] = torch.tensor(MOVES)
        blows = {
            "ally_blow": [[ours.hit(theirs) for theirs in spec.enemies] for ours in spec.allies],
            "enemy_blow": [[theirs.hit(ours) for theirs in spec.enemies] for ours in spec.allies],
        }
        constants = {
            "places": start_places(spec),
            "moves": moves,
            "health": _column(units, "health", device),
            "shield": _column(units, "shield", device),
            "armour": _column(units, "armour", device),
            "cooldown": _column(units, "cooldown", device),
            "regeneration": _column(units, "health_regeneration", device) * tick,
            "speed": _column(units, "speed", device) * tick,
            "weapon": reach,
            "radius": _column(units, "radius", device),
            "hits": _column(units, "hits", device),
            # Above such a cooldown the attack is not over yet.
            "follow_through": _column(units, "cooldown", device)
            - _column(units, "follow_through", device),
            "ally_index": torch.arange(spec.num_allies).unsqueeze(1),
            "enemy_index": torch.arange(spec.num_enemies),
            "hostile": torch.arange(len(units)) >= self.allies,
            "splash": torch.tensor([unit.splash for unit in spec.allies]).T,
            **{name: torch.tensor(rows) for name, rows in blows.items()},
        }
        for name, value in constants.items():
            self.register_buffer(name, value.to(device), persistent=False)
        self.ground = Ground(spec, device=device)
        self.splashes = any(ally.splash[0] for ally in spec.allies)

    @property
    def noise_size(self) -> int:
        """How many random numbers the start of a battle takes."""
        return 1 + 2 * self.spec.num_enemies

    def start(self, noise: Tensor) -> Battle:
        """Fresh battles.

        Args:
            noise: uniform numbers [B, ``noise_size``] in [0, 1).
        """
        count, noise = len(noise), noise.to(self.places.dtype)
        between, shift = noise[:, 0], noise[:, 1:].reshape(count, -1, 2)
        places = self.places.expand(count, -1, -1)
        ours, theirs = places[:, : self.allies], places[:, self.allies :]
        theirs = theirs + START_NOISE * (2 * shift - 1)
        zeros = self.health.new_zeros(count, len(self.health))
        return Battle(
            position=torch.cat([ours, theirs], 1).movedim(-1, 0).contiguous(),
            health=self.health + zeros,
            shield=self.shield + zeros,
            cooldown=zeros,
            unhurt=zeros.clone(),
            goal=torch.lerp(ours[:, 0].T, ours[:, -1].T, between).contiguous(),
            last_action=torch.full_like(zeros[:, : self.allies], NO_ACTION, dtype=torch.int64),
        )

    def step(self, battle: Battle, action: Tensor) -> Battle:
        """The battles after eight loops.

        Args:
            battle: where they stand; left as it is.
            action: what each ally is told to do [B, A]; an attack on the dead is a stop, and the
                dead do nothing.
        """
        attacks, targets = action >= FIRST_ATTACK, (action - FIRST_ATTACK).clamp_min(0)
        way = self.moves[action].movedim(-1, 0) * self.speed[: self.allies]
        for _ in range(LOOPS // self.tick):
            battle = self._advance(battle, attacks, targets, way)
        return replace(battle, last_action=action)

    def _advance(self, battle: Battle, attacks: Tensor, targets: Tensor, way: Tensor) -> Battle:
        """One tick: everybody looks, shoots, heals and walks at the same time."""
        allies, position, tick = self.allies, battle.position, self.tick
        alive = battle.health > 0
        gap = position[:, :, None, allies:] - position[..., :allies, None]
        distance = gap.square().sum(0).masked_fill_(~alive[:, :allies, None], torch.inf)
        nearest = distance.min(1).indices

        # Whom everybody is after, and how far away that is.
        target = torch.cat([targets + allies, nearest], 1)
        size = self.radius.expand_as(target)
        known = torch.cat([position, torch.stack([alive, size])])
        place, (lives, size) = known.gather(2, target.expand_as(known)).split(2)
        gap_to = place - position
        far = gap_to.square().sum(0).sqrt_()
        wanted = torch.cat([attacks, self._sees(far[:, allies:])], 1) & alive & (lives > 0)
        room = far - self.weapon - size
        near = wanted & (room <= 0)
        ready = battle.cooldown <= 0
        fires = near & ready
        cooldown = torch.where(ready, tick, battle.cooldown) - tick
        cooldown = torch.where(fires, battle.cooldown + (self.cooldown - tick), cooldown)

        total, number = self._blows(fires, targets, nearest, gap_to, gap, alive)
        health, shield = self._hurt(battle, total, number)
        unhurt = (battle.unhurt + tick).masked_fill_(number > 0, 0)
        shield = shield + (tick * _SHIELD_REGENERATION) * (unhurt > _SHIELD_DELAY)
        shield = torch.minimum(shield, self.shield) * alive
        health = torch.minimum(health + self.regeneration * (health > 0), self.health)

        step = self._walk(battle, way, place, room, wanted) * alive
        position = self.ground.move(position, step, alive)
        return replace(
            battle, position=position, health=health, shield=shield, cooldown=cooldown,
            unhurt=unhurt,
        )  # fmt: skip

    def _sees(self, far: Tensor) -> Tensor:
        """Which enemies know whom to attack [B, E]."""
        return far < (SIGHT if self.spec.order == "between" else torch.inf)

    def _blows(
        self,
        fires: Tensor,
        targets: Tensor,
        nearest: Tensor,
        gap_to: Tensor,
        gap: Tensor,
        alive: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """The damage that everybody is dealt before armour, and by how many hits [B, U]."""
        allies = self.allies
        our_fire, their_fire = fires[:, :allies, None], fires[:, None, allies:]
        ours = targets.unsqueeze(2) == self.enemy_index
        if self.splashes:
            ours = ours | (self._swept(gap_to[..., :allies], gap) & alive[:, None, allies:])
        ours = (ours & our_fire) * self.hits[:allies, None]
        theirs = ((nearest.unsqueeze(1) == self.ally_index) & their_fire) * self.hits[allies:]
        number = torch.cat([theirs.sum(2), ours.sum(1)], 1)
        total = torch.cat([(theirs * self.enemy_blow).sum(2), (ours * self.ally_blow).sum(1)], 1)
        return total, number

    def _swept(self, gap_to: Tensor, gap: Tensor) -> Tensor:
        """Which enemies stand where an ally's beam sweeps across its target [B, A, E]."""
        x, y = gap_to / gap_to.square().sum(0).sqrt().clamp_min(_TINY)
        x, y = x.unsqueeze(-1), y.unsqueeze(-1)
        off_x, off_y = gap - gap_to.unsqueeze(-1)
        edge = self.radius[self.allies :]
        length, width = self.splash.unsqueeze(-1) / 2
        along, across = off_x * x + off_y * y, off_x * y - off_y * x
        return (along.abs() <= width + edge) & (across.abs() <= length + edge) & (length > 0)

    def _hurt(self, battle: Battle, total: Tensor, number: Tensor) -> tuple[Tensor, Tensor]:
        """Health and shield after some hits: first the shield takes them, then armour helps."""
        through = (total - battle.shield).clamp_min(0)
        blow = total / number.clamp_min(1)
        # Each hit that is not wholly taken by the shield meets the armour.
        met = (through / blow.clamp_min(1)).ceil()
        lost = (through - self.armour * met).clamp_min(0)
        return (battle.health - lost).clamp_min(0), (battle.shield - total).clamp_min(0)

    def _walk(
        self, battle: Battle, way: Tensor, place: Tensor, room: Tensor, wanted: Tensor
    ) -> Tensor:
        """How far everybody would like to go in this tick [2, B, U]."""
        allies = self.allies
        ours, theirs = battle.position[..., :allies], battle.position[..., allies:]
        aim = torch.where(wanted[:, allies:], place[..., allies:], battle.goal.unsqueeze(-1))
        gap = torch.cat([place[..., :allies] - ours, self.ground.toward(theirs, aim) - theirs], -1)
        far = gap.square().sum(0).sqrt_().clamp_min_(_TINY)
        stride = torch.where(wanted, (room + _CONTACT).clamp_min_(0), far).minimum(self.speed)
        # Allies go nowhere by themselves.
        follows = battle.cooldown > self.follow_through
        gap *= (stride / far) * ((wanted | self.hostile) & ~follows)
        return torch.cat([gap[..., :allies] + way, gap[..., allies:]], -1)
