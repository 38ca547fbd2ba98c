"""What agents see, may do and are paid: a function of snapshots alone, whatever plays the battle.

Orders and scales are SMAC's (see ``docs/smac.md``).
"""

from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sipo_trl.envs.smac.battle_map import MapSpec
from sipo_trl.envs.smac.snapshot import Snapshot
from sipo_trl.envs.smac.units import UnitType
from sipo_trl.envs.smac.view import MOVES, View

Layout = Literal["smac", "sipo"]

KILL_REWARD, WIN_REWARD, REWARD_SCALE = 10.0, 200.0, 20.0


class Features(nn.Module):
    """Turns snapshots of one map's battles into everything that agents and learners see.

    Args:
        spec: the map.

    Keyword Args:
        layout: of observations. ``"smac"``: SMAC's; ``"sipo"``: with the agent's own visibility
            and place beside its health, and its one-hot index at the end.
        walkable: where each ally may be sent [A, y, x], bool; from the map unless given.
        device: where the snapshots live.

    Examples:
        >>> from sipo_trl.envs.smac import Side, Snapshot, load_map
        >>> one = torch.ones(1, 1)
        >>> marines = Side(
        ...     45 * torch.ones(1, 2), torch.zeros(1, 2), torch.zeros(1, 2),
        ...     torch.tensor([[[13.0, 12.0], [19.0, 12.0]]]),
        ... )
        >>> zealot = Side(100 * one, 50 * one, 0 * one, torch.tensor([[[13.0, 17.0]]]))
        >>> snapshot = Snapshot(marines, zealot, torch.tensor([[-1, -1]]))
        >>> view = Features(load_map("2m_vs_1z"))(snapshot)
        >>> view.observation.shape, view.agent_state.shape, view.state.shape
        (torch.Size([1, 2, 16]), torch.Size([1, 2, 30]), torch.Size([1, 26]))
        >>> view.action_mask.int().tolist()  # the first can attack, none may do nothing
        [[[0, 1, 1, 1, 1, 1, 1], [0, 1, 1, 1, 1, 1, 0]]]
    """

    exits: Tensor
    agents: Tensor
    actions: Tensor
    identity: Tensor
    others: Tensor
    cooldowns: Tensor
    ally_health: Tensor
    ally_shield: Tensor
    ally_kind: Tensor
    enemy_health: Tensor
    enemy_shield: Tensor
    enemy_kind: Tensor

    def __init__(
        self,
        spec: MapSpec,
        *,
        layout: Layout = "smac",
        walkable: Tensor | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__()
        if layout not in get_args(Layout):
            raise ValueError(f"layout is {layout!r}; choose one of {list(get_args(Layout))}.")
        self.spec, self.layout = spec, layout
        if walkable is None:
            walkable = torch.stack([spec.walkable(climbs=ally.climbs) for ally in spec.allies])
        agents = torch.arange(spec.num_allies, device=device)
        constants = {
            "exits": _exits(walkable).to(device),
            "agents": agents,
            "actions": torch.arange(spec.num_actions, device=device),
            "identity": torch.eye(spec.num_allies, device=device),
            # Everybody but oneself, in order.
            "others": (agents[:-1] + (agents[:-1] >= agents.unsqueeze(1))).long(),
            "cooldowns": _column(spec.allies, "shown_cooldown", device),
        }
        for side, units in {"ally": spec.allies, "enemy": spec.enemies}.items():
            constants[f"{side}_health"] = _column(units, "health", device)
            constants[f"{side}_shield"] = _column(units, "shield", device).clamp_min(1)
            kinds = torch.tensor([[unit is kind for kind in spec.kinds] for unit in units])
            constants[f"{side}_kind"] = kinds.to(device=device, dtype=torch.float32)
        for name, value in constants.items():
            self.register_buffer(name, value, persistent=False)
        self.ally_shields = any(unit.shield for unit in spec.allies)
        self.enemy_shields = any(unit.shield for unit in spec.enemies)
        lives = sum(unit.health + unit.shield + KILL_REWARD for unit in spec.enemies)
        self.max_reward = lives + WIN_REWARD

    def forward(self, snapshot: Snapshot) -> View:
        """What a moment looks like; nothing is computed before it is asked for."""
        return View(self, snapshot)

    def reward(self, before: View, after: View) -> Tensor:
        """What a step is worth [B, 1]: 20 in a won episode, but for what enemies regain."""
        dead = ~after.enemies_alive
        # The dead have neither health nor shield.
        gained = before.enemies_left - after.enemies_left + KILL_REWARD * dead
        total = (gained * before.enemies_alive).sum(-1, keepdim=True).abs()
        return (total + WIN_REWARD * after.won) * (REWARD_SCALE / self.max_reward)

    @property
    def sizes(self) -> dict[str, int]:
        """How many features there are of each sort; of the first two, per agent."""
        spec = self.spec
        kinds, allies, enemies = len(spec.kinds), spec.num_allies, spec.num_enemies
        ally, enemy = 1 + self.ally_shields + kinds, 1 + self.enemy_shields + kinds
        observation = len(MOVES) + enemies * (4 + enemy) + (allies - 1) * (4 + ally) + ally
        # SIPO adds an agent's own visibility and place relative to itself, and its index.
        own = 4 + allies
        return {
            "observation": observation + (own if self.layout == "sipo" else 0),
            # To this the state adds places on the map, enemies' visibility, allies' cooldowns.
            "agent_state": observation + own + 3 * enemies + 3 * (allies - 1) + 2,
            "state": allies * (3 + ally) + enemies * (2 + enemy) + allies * spec.num_actions,
            "diversity_state": allies * (3 + ally),
        }


def _exits(walkable: Tensor) -> Tensor:
    """Whether the cells to the north, south, east and west of each are free [A, y * x, 4]."""
    padded = F.pad(walkable, (1, 1, 1, 1))
    size = walkable.shape[-1]
    sides = [
        padded[:, 1 + dy : 1 + dy + size, 1 + dx : 1 + dx + size]
        for dx, dy in ((int(x), int(y)) for x, y in MOVES)
    ]
    return torch.stack(sides, -1).flatten(1, 2)


def _column(units: tuple[UnitType, ...], name: str, device: torch.device | str | None) -> Tensor:
    return torch.tensor([float(getattr(unit, name)) for unit in units], device=device)
