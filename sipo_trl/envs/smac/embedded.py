"""Battles that the embedded engine plays."""

from dataclasses import fields

import torch
from torch import Tensor

from sipo_trl.envs.noise import counter_uniform
from sipo_trl.envs.smac.backend import BattleBackend
from sipo_trl.envs.smac.battle import Battle
from sipo_trl.envs.smac.battle_map import MapSpec
from sipo_trl.envs.smac.engine import Engine
from sipo_trl.envs.smac.snapshot import Snapshot


class EmbeddedBackend(BattleBackend):
    """Battles as tensors, thousands at once on any device.

    All that it knows is in its buffers, which are replaced at each step, never written in place: a
    ``state_dict`` restores it exactly and keeps its moment. The start of a battle is drawn from the
    seed, the copy's index and the number of the copy's battle alone.

    Args:
        spec: the map.

    Keyword Args:
        copies: the number B of battles.
        device: where they live.

    Examples:
        >>> from sipo_trl.envs.smac import load_map
        >>> backend = EmbeddedBackend(load_map("2m_vs_1z"), copies=8)
        >>> backend.set_seed(0)
        >>> backend.start()
        >>> backend.play(torch.ones(8, 2, dtype=torch.int64))
        >>> backend.snapshot().enemies.position.shape
        torch.Size([8, 1, 2])
    """

    episode: Tensor
    seed: Tensor

    def __init__(
        self, spec: MapSpec, *, copies: int, device: torch.device | str | None = None
    ) -> None:
        super().__init__(spec, copies=copies, device=device)
        self.engine = Engine(spec, device=device)
        counts = torch.zeros(copies, 1, dtype=torch.int64, device=device)
        self.register_buffer("episode", counts)
        self.register_buffer("seed", torch.zeros((), dtype=torch.int64, device=device))
        noise = torch.zeros(copies, self.engine.noise_size, device=device)
        for name, value in vars(self.engine.start(noise)).items():
            self.register_buffer(name, value)

    def set_seed(self, seed: int) -> None:
        """Decides the starts of all battles from now on."""
        self.seed = torch.full_like(self.seed, seed)
        self.episode = torch.zeros_like(self.episode)

    def start(self, chosen: Tensor | None = None) -> None:
        """Begins new battles where chosen [B, 1], bool; in all if ``None``."""
        size = self.engine.noise_size
        copies = torch.arange(self.copies, device=self.device).unsqueeze(-1)
        number = self.episode * self.copies + copies
        columns = torch.arange(size, device=self.device)
        fresh = self.engine.start(counter_uniform(self.seed, number * size + columns))
        episode = self.episode + 1
        if chosen is not None:
            fresh = fresh.where(chosen, self.battle)
            episode = torch.where(chosen, episode, self.episode)
        self.episode = episode
        self._buffers.update(vars(fresh))

    def play(self, action: Tensor, moving: Tensor | None = None) -> None:
        """Goes on by one step, where moving [B, 1]."""
        after = self.engine.step(self.battle, action)
        if moving is not None:
            after = after.where(moving, self.battle)
        self._buffers.update(vars(after))

    @property
    def battle(self) -> Battle:
        """The battles themselves."""
        return Battle(**{field.name: getattr(self, field.name) for field in fields(Battle)})

    def snapshot(self) -> Snapshot:
        """Where the battles stand."""
        return self.battle.snapshot()
