"""What one moment of battles looks like."""

from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional as F

from sipo_trl.envs.smac.battle_map import SIZE
from sipo_trl.envs.smac.snapshot import Side, Snapshot

if TYPE_CHECKING:
    from sipo_trl.envs.smac.features import Features

SIGHT = 9.0
ATTACK_DISTANCE = 6.0
MOVES = ((0.0, 1.0), (0.0, -1.0), (1.0, 0.0), (-1.0, 0.0))
"""North, south, east and west: the actions 2 to 5."""


class View:
    """What one moment of B battles looks like; each part is computed once, when it is asked for.

    Args:
        features: of the map.
        snapshot: the moment.
    """

    def __init__(self, features: "Features", snapshot: Snapshot) -> None:
        self.features, self.snapshot = features, snapshot

    @cached_property
    def observation(self) -> Tensor:
        """What each agent sees [B, A, F]: moves, enemies, other allies, itself; 0 if dead."""
        features = self.features
        traits = _each(self._enemy_traits, features.spec.num_allies)
        enemies = torch.cat([self._to_enemies, traits], -1)
        enemies = enemies * self._enemy_seen.unsqueeze(-1)
        seen = self._ally_seen.unsqueeze(-1)
        allies = torch.cat([seen, self._to_allies, self._other(self._ally_traits)], -1) * seen
        parts = [self._may_move.float(), enemies.flatten(2), allies.flatten(2)]
        if features.layout == "smac":
            parts.append(self._ally_traits)
        else:
            parts += [self._here, self._ally_traits, self._identity]
        return torch.cat(parts, -1) * self.alive.unsqueeze(-1)

    @cached_property
    def agent_state(self) -> Tensor:
        """What the critic sees of each agent's place in the whole [B, A, F]; 0 if dead.

        Other allies [visible, distance, dx, dy, cooldown, health, (shield), x, y]; enemies
        [attackable, distance, dx, dy, visible, health, (shield), x, y], all of them, however far;
        moves; itself [1, 0, 0, 0, health, (shield), x, y]; its one-hot index.
        """
        agents = self.features.spec.num_allies
        others = torch.cat([self._cooldown, self._ally_traits, self._ally_place], -1)
        others = torch.cat(
            [self._ally_seen.unsqueeze(-1), self._to_allies, self._other(others)], -1
        )
        others = others * self._other(self.alive.unsqueeze(-1))
        seen = self._enemy_seen.unsqueeze(-1)
        traits = torch.cat([self._enemy_traits, self._enemy_place], -1)
        enemies = torch.cat([self._to_enemies, seen, _each(traits, agents)], -1)
        enemies = enemies * self.enemies_alive[:, None, :, None]
        own = torch.cat([self._here, self._ally_traits, self._ally_place, self._identity], -1)
        parts = [others.flatten(2), enemies.flatten(2), self._may_move.float(), own]
        return torch.cat(parts, -1) * self.alive.unsqueeze(-1)

    @cached_property
    def state(self) -> Tensor:
        """SMAC's global state [B, F]: allies, enemies, last actions."""
        health, rest = self._enemy_traits.split([1, self._enemy_traits.shape[-1] - 1], -1)
        enemies = torch.cat([health, self._enemy_place, rest], -1)
        enemies = enemies * self.enemies_alive.unsqueeze(-1)
        done = self.snapshot.last_action.unsqueeze(-1) == self.features.actions
        return torch.cat([self.diversity_state, enemies.flatten(1), done.float().flatten(1)], -1)

    @cached_property
    def diversity_state(self) -> Tensor:
        """The allies' part of the global state [B, F], agent after agent."""
        health, rest = self._ally_traits.split([1, self._ally_traits.shape[-1] - 1], -1)
        allies = torch.cat([health, self._cooldown, self._ally_place, rest], -1)
        return (allies * self.alive.unsqueeze(-1)).flatten(1)

    @cached_property
    def action_mask(self) -> Tensor:
        """What each agent may do [B, A, actions]: the dead no-op and nothing else."""
        alive = self.alive.unsqueeze(-1)
        return torch.cat([~alive, alive, self._may_move, self._attackable], -1)

    @cached_property
    def alive(self) -> Tensor:
        """Which agents live [B, A]."""
        return self.snapshot.allies.alive

    @cached_property
    def enemies_alive(self) -> Tensor:
        """Which enemies live [B, E]."""
        return self.snapshot.enemies.alive

    @cached_property
    def enemies_left(self) -> Tensor:
        """Health and shield of each enemy together [B, E]; 0 for the dead."""
        enemies = self.snapshot.enemies
        return (enemies.health + enemies.shield) * self.enemies_alive

    @cached_property
    def won(self) -> Tensor:
        """Whether only allies live [B, 1]."""
        return self._standing[0] & ~self._standing[1]

    @cached_property
    def ended(self) -> Tensor:
        """Whether a side has no units left [B, 1]."""
        return ~(self._standing[0] & self._standing[1])

    @cached_property
    def _standing(self) -> tuple[Tensor, Tensor]:
        """Whether allies, and whether enemies, have units left [B, 1]."""
        return self.alive.any(-1, keepdim=True), self.enemies_alive.any(-1, keepdim=True)

    @cached_property
    def _enemy_way(self) -> Tensor:
        """From allies to enemies [B, A, E, 2]."""
        snapshot = self.snapshot
        return snapshot.enemies.position.unsqueeze(1) - snapshot.allies.position.unsqueeze(2)

    @cached_property
    def _enemy_distance(self) -> Tensor:
        return self._enemy_way.square().sum(-1).sqrt()

    @cached_property
    def _enemy_seen(self) -> Tensor:
        return self.enemies_alive.unsqueeze(1) & (self._enemy_distance < SIGHT)

    @cached_property
    def _attackable(self) -> Tensor:
        """Whom each agent may attack [B, A, E]."""
        both = self.enemies_alive.unsqueeze(1) & self.alive.unsqueeze(-1)
        return both & (self._enemy_distance <= ATTACK_DISTANCE)

    @cached_property
    def _to_enemies(self) -> Tensor:
        """Attackable, distance, dx, dy [B, A, E, 4]."""
        way = torch.cat([self._enemy_distance.unsqueeze(-1), self._enemy_way], -1) / SIGHT
        return torch.cat([self._attackable.unsqueeze(-1), way], -1)

    @cached_property
    def _to_allies(self) -> Tensor:
        """Distance, dx, dy to other allies [B, A, A - 1, 3]."""
        position = self.snapshot.allies.position
        way = self._other(position) - position.unsqueeze(2)
        return torch.cat([way.square().sum(-1, keepdim=True).sqrt(), way], -1) / SIGHT

    @cached_property
    def _ally_seen(self) -> Tensor:
        near = self._to_allies[..., 0] < 1
        return near & self._other(self.alive.unsqueeze(-1)).squeeze(-1)

    @cached_property
    def _ally_traits(self) -> Tensor:
        """Health, shield where there are any, kind where there are several [B, A, F]."""
        features = self.features
        scales = features.ally_health, features.ally_shield, features.ally_kind
        return _traits(self.snapshot.allies, *scales, shields=features.ally_shields)

    @cached_property
    def _enemy_traits(self) -> Tensor:
        features = self.features
        scales = features.enemy_health, features.enemy_shield, features.enemy_kind
        return _traits(self.snapshot.enemies, *scales, shields=features.enemy_shields)

    @cached_property
    def _cooldown(self) -> Tensor:
        return (self.snapshot.allies.cooldown / self.features.cooldowns).unsqueeze(-1)

    @cached_property
    def _ally_place(self) -> Tensor:
        return (self.snapshot.allies.position - SIZE / 2) / SIZE

    @cached_property
    def _enemy_place(self) -> Tensor:
        return (self.snapshot.enemies.position - SIZE / 2) / SIZE

    @cached_property
    def _may_move(self) -> Tensor:
        """Whether the cell one step to the north, south, east, west can be walked on [B, A, 4]."""
        features = self.features
        x, y = self.snapshot.allies.position.long().unbind(-1)
        return features.exits[features.agents, y * SIZE + x] & self.alive.unsqueeze(-1)

    @cached_property
    def _here(self) -> Tensor:
        """An agent's own visibility, distance, dx, dy [B, A, 4]."""
        return F.pad(torch.ones_like(self._cooldown), (0, 3))

    @cached_property
    def _identity(self) -> Tensor:
        identity = self.features.identity
        return identity.expand(len(self.snapshot.last_action), *identity.shape)

    def _other(self, values: Tensor) -> Tensor:
        """What belongs to all but each agent: [B, A, F] to [B, A, A - 1, F]."""
        return values[:, self.features.others]


def _traits(side: Side, health: Tensor, shield: Tensor, kind: Tensor, *, shields: bool) -> Tensor:
    parts = [(side.health / health).unsqueeze(-1)]
    if shields:
        parts.append((side.shield / shield).unsqueeze(-1))
    if kind.shape[-1]:
        parts.append(kind.expand(len(side.health), *kind.shape))
    return torch.cat(parts, -1)


def _each(values: Tensor, agents: int) -> Tensor:
    """The same [B, N, F] for each agent: [B, A, N, F]."""
    return values.unsqueeze(1).expand(-1, agents, -1, -1)
