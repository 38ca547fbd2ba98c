import torch

from sipo_trl.envs.smac import Side


class Engine:
    def __init__(self, spec, *, seed):
        self.spec = spec
        self.seed = seed

    def begin(self):
        def side(kinds, places):
            n = len(kinds)
            pos = torch.tensor(places)[None] + torch.arange(n)[:, None] * 0.25
            return Side(
                torch.tensor([[float(k.health) for k in kinds]]),
                torch.tensor([[float(k.shield) for k in kinds]]),
                torch.zeros(1, n),
                pos,
            )

        self.a = side(self.spec.allies, self.spec.ally_places)
        self.e = side(self.spec.enemies, self.spec.enemy_places)
        return self.a, self.e

    def step(self, action):
        from sipo_trl.envs.smac.view import MOVES

        pos = self.a.position.clone()
        eh = self.e.health.clone()
        for i, a in enumerate(action[0].tolist()):
            if 2 <= a < 6:
                pos[0, i] += torch.tensor(MOVES[a - 2])
            if a >= 6:
                eh[0, a - 6] = (eh[0, a - 6] - 20).clamp_min(0)
        self.a = Side(self.a.health, self.a.shield, self.a.cooldown, pos)
        self.e = Side(eh, self.e.shield, self.e.cooldown, self.e.position)
        return self.a, self.e
