"""The state of many battles, as the embedded engine keeps it."""

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from sipo_trl.envs.smac.snapshot import Side, Snapshot


@dataclass(frozen=True)
class Battle:
    """B battles of A allies and E enemies, in this order in all that has U = A + E entries.

    Attributes:
        position: x and y [2, B, U]; of the dead, where they died.
        health: [B, U].
        shield: [B, U].
        cooldown: loops until the next attack [B, U]; up to a loop below 0 where it is overdue.
        unhurt: loops since the last hit [B, U].
        goal: where enemies go that see nobody [2, B].
        last_action: of the allies [B, A].
    """

    position: Tensor
    health: Tensor
    shield: Tensor
    cooldown: Tensor
    unhurt: Tensor
    goal: Tensor
    last_action: Tensor

    def where(self, chosen: Tensor, other: "Battle") -> "Battle":
        """These battles where chosen [B, 1], others elsewhere."""
        new = {}
        for field in fields(self):
            ours, theirs = getattr(self, field.name), getattr(other, field.name)
            mask = chosen.squeeze(-1) if field.name == "goal" else chosen
            new[field.name] = torch.where(mask, ours, theirs)
        return Battle(**new)

    def snapshot(self) -> Snapshot:
        """What features are made of."""
        allies = self.last_action.shape[-1]
        place = self.position.movedim(0, -1)
        cooldown = self.cooldown.clamp_min(0)
        ours, theirs = (
            Side(self.health[:, part], self.shield[:, part], cooldown[:, part], place[:, part])
            for part in (slice(allies), slice(allies, None))
        )
        return Snapshot(ours, theirs, self.last_action)
