"""What keeps units apart and out of walls."""

import torch
from torch import Tensor, nn

from sipo_trl.envs.smac.battle_map import SIZE, MapSpec
from sipo_trl.envs.smac.paths import waypoints

# Pairs of units that are looked at in one piece: tensors of this size stay in the cache, which was
# measured to be five times as fast as whole batches.
_PIECE = 2**17
# Where units stand so close that the push would be out of bounds.
_NEAREST = 1e-6
_EDGE = SIZE - 1e-3
_NOWHERE = 1e3


class Ground(nn.Module):
    """The ground of one map, and the room that units take on it.

    Args:
        spec: the map.

    Keyword Args:
        device: where battles live.
    """

    free: Tensor
    reach: Tensor
    share: Tensor
    shelf: Tensor
    offset: Tensor
    ways: Tensor | None

    def __init__(self, spec: MapSpec, *, device: torch.device | str | None = None) -> None:
        super().__init__()
        units = (*spec.allies, *spec.enemies)
        free = torch.stack([spec.walkable(climbs=climbs) for climbs in (False, True)]).flatten()
        separation = torch.tensor([unit.separation for unit in units])
        mass = separation.square()
        index = torch.arange(len(units))
        constants = {
            "free": free,
            "offset": torch.tensor([int(unit.climbs) for unit in units]) * SIZE * SIZE,
            "reach": separation.unsqueeze(1) + separation,
            # The lighter of two gives way more.
            "share": (mass / (mass.unsqueeze(1) + mass)).fill_diagonal_(0),
            "shelf": _NOWHERE * (1 + index.float()),
            "ways": waypoints(spec, climbs=all(enemy.climbs for enemy in spec.enemies)),
        }
        for name, value in constants.items():
            value = None if value is None else value.to(device)
            self.register_buffer(name, value, persistent=False)

    def move(self, position: Tensor, step: Tensor, alive: Tensor) -> Tensor:
        """Where units come to that would like to make a step.

        Args:
            position: where they are [2, B, U].
            step: where they would like to go from there [2, B, U]; 0 for the dead.
            alive: who takes room [B, U].
        """
        wanted = position + step
        wanted = wanted + self._pushes(torch.where(alive, wanted, self.shelf)) * alive
        return self._keep_out(position, wanted.clamp(0, _EDGE))

    def toward(self, position: Tensor, target: Tensor) -> Tensor:
        """What enemies head for [2, B, E] on their way to a target [2, B, E]."""
        if self.ways is None:
            return target
        way = self.ways.view(-1)[_cell(*position) * (SIZE * SIZE) + _cell(*target)].long()
        corner = torch.stack([way % SIZE, way // SIZE]) + 0.5
        return torch.where(way < 0, target, corner)

    def _pushes(self, position: Tensor) -> Tensor:
        """How far units are pushed out of each other [2, B, U]."""
        copies = max(1, _PIECE // len(self.shelf) ** 2)
        return torch.cat([self._push(piece) for piece in position.split(copies, 1)], 1)

    def _push(self, position: Tensor) -> Tensor:
        x, y = position
        dx, dy = x.unsqueeze(2) - x.unsqueeze(1), y.unsqueeze(2) - y.unsqueeze(1)
        nearness = torch.addcmul(dx * dx, dy, dy).clamp_min_(_NEAREST).rsqrt_()
        overlap = nearness.mul_(self.reach).sub_(1).clamp_min_(0).mul_(self.share)
        return torch.stack([dx.mul_(overlap).sum(2), dy.mul_(overlap).sum(2)])

    def _keep_out(self, old: Tensor, new: Tensor) -> Tensor:
        """Units that would be in a wall slide along it, or stay where they are."""
        (x, y), (old_x, old_y) = new.long(), old.long()
        y, old_y = y * SIZE + self.offset, old_y * SIZE + self.offset
        both, along_x, along_y = self.free[torch.stack([y + x, old_y + x, y + old_x])]
        keeps_x = both | along_x
        keeps_y = both | (along_y & ~along_x)
        return torch.where(torch.stack([keeps_x, keeps_y]), new, old)


def _cell(x: Tensor, y: Tensor) -> Tensor:
    return y.long() * SIZE + x.long()
