"""What plays the battles of an environment."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from sipo_trl.envs.smac.battle_map import MapSpec
from sipo_trl.envs.smac.snapshot import Snapshot


class BattleBackend(nn.Module, ABC):
    """Plays B battles of one map.

    Args:
        spec: the map.
        copies: the number B of battles.
        device: where snapshots live.
    """

    def __init__(
        self, spec: MapSpec, *, copies: int, device: torch.device | str | None = None
    ) -> None:
        super().__init__()
        self.spec, self.copies, self.device = spec, copies, device

    @abstractmethod
    def set_seed(self, seed: int) -> None:
        """Decides the course of everything that is drawn."""

    @abstractmethod
    def start(self, chosen: Tensor | None = None) -> None:
        """Begins new battles where chosen [B, 1], bool; in all if ``None``."""

    @abstractmethod
    def play(self, action: Tensor, moving: Tensor | None = None) -> None:
        """Goes on by one step.

        Args:
            action: what each ally is told to do [B, A].
            moving: which battles go on [B, 1], bool; all if ``None``.
        """

    @abstractmethod
    def snapshot(self) -> Snapshot:
        """Where the battles stand."""

    def lost(self) -> Tensor:
        """Which battles broke off where they stand, through nobody's doing [B, 1], bool."""
        return torch.zeros(self.copies, 1, dtype=torch.bool, device=self.device)

    def walkable(self) -> Tensor | None:
        """Where each ally may be sent [A, y, x], if the map's file does not tell."""
        return None

    def close(self) -> None:
        """Frees what the battles hold."""
