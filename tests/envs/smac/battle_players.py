"""Players that follow a rule, for whole batches of battles."""

import torch
from torch import Tensor

from sipo_trl.envs.smac import View
from sipo_trl.envs.smac.view import MOVES

FIRST_MOVE, FIRST_ATTACK = 2, 6


def shoot(view: View) -> Tensor:
    """Attack the nearest enemy, stop where none is in reach, no-op if dead."""
    way = view.snapshot.enemies.position.unsqueeze(1) - view.snapshot.allies.position.unsqueeze(2)
    attackable = view.action_mask[..., FIRST_ATTACK:]
    distance = way.norm(dim=-1).masked_fill(~attackable, torch.inf)
    action = torch.where(attackable.any(-1), FIRST_ATTACK + distance.argmin(-1), 1)
    return torch.where(view.alive, action, 0)


def move(view: View, toward: Tensor) -> Tensor:
    """The legal move [B, A] that brings each ally nearest to a point [B, A, 2]."""
    legal = view.action_mask[..., FIRST_MOVE:FIRST_ATTACK]
    reached = view.snapshot.allies.position.unsqueeze(2) + torch.tensor(MOVES)
    distance = (reached - toward.unsqueeze(2)).norm(dim=-1).masked_fill(~legal, torch.inf)
    action = torch.where(legal.any(-1), FIRST_MOVE + distance.argmin(-1), 1)
    return torch.where(view.alive, action, 0)


def alternate(view: View, danger: float = 5.0, centre: float = 0.05) -> Tensor:
    """Whoever is nearer to the enemy runs from it, away from the walls; the other shoots."""
    snapshot = view.snapshot
    enemy = snapshot.enemies.position[:, :1]
    distance = (snapshot.allies.position - enemy).norm(dim=-1)
    distance = distance.masked_fill(~view.alive, torch.inf)
    hunted = (distance == distance.amin(-1, keepdim=True)) & (distance < danger)
    legal = view.action_mask[..., FIRST_MOVE:FIRST_ATTACK]
    reached = snapshot.allies.position.unsqueeze(2) + 2 * torch.tensor(MOVES)
    score = (reached - enemy.unsqueeze(2)).norm(dim=-1)
    score = score - centre * (reached - 16).square().sum(-1)
    run = FIRST_MOVE + score.masked_fill(~legal, -torch.inf).argmax(-1)
    nearer = move(view, enemy.expand_as(snapshot.allies.position))
    # At 6 an attack is legal but not yet in range: whoever attacks then only trails behind.
    fight = torch.where(distance > 5.2, nearer, shoot(view))
    return torch.where(view.alive, torch.where(hunted, run, fight), 0)
