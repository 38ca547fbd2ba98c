"""What can be set about StarCraft battles."""

from dataclasses import dataclass, field
from typing import Any, cast

import torch

from sipo_trl.envs.config.base import CriticScale, EnvConfig, KernelScale
from sipo_trl.envs.smac import SMACEnv
from sipo_trl.envs.smac.env import Backend as BattleBackendName


@dataclass
class SMACConfig(EnvConfig):
    """A StarCraft battle; the name of the environment is ``smac_`` and that of the map."""

    name: str = "smac_2m_vs_1z"
    map_name: str = "2m_vs_1z"
    """Which battle."""
    horizon: int = 150
    quick_frames: int = 1_000_000
    full_frames: int = 5_000_000
    # A won battle returns 20: so much means that nine of ten are won.
    solved: float | None = 18.5
    columns: list[str] = field(
        default_factory=lambda: ["position", "alive", "enemy_position", "enemy_alive"]
    )
    # Of 2m_vs_1z, where policies that know nothing of each other have a Wasserstein distance of
    # 0.45 to 0.7 and a similarity of about 0.09; to its own other battles a policy has 0.12 to
    # 0.21. A multiplier of 1 makes these worth a tenth of a victory or so.
    rbf: KernelScale = field(
        default_factory=lambda: KernelScale(
            delta=0.05, alpha=100.0, unit=0.05, mean_over="steps", variance=0.5
        )
    )
    wd: CriticScale = field(
        default_factory=lambda: CriticScale(
            delta=0.9, alpha=10.0, unit=0.4, mean_over="steps", batch_size=1024
        )
    )
    backend: str = "embedded"
    """What plays: embedded, our own engine, whose results are not SMAC's, or sc2, the game."""
    version: str | None = None
    """Which of the installed games backend=sc2 starts, such as 4.10; null for the newest."""
    replay_dir: str | None = None
    """Where backend=sc2 leaves a replay of each game when it closes it; null for nowhere."""

    def make_single(self, num_envs: int, *, seed: int, device: torch.device | str) -> SMACEnv:
        """Battles that start a little differently, drawn from the seed."""
        options: dict[str, Any] = {"version": self.version, "replay_dir": self.replay_dir}
        return SMACEnv(
            self.map_name,
            batch_size=[num_envs],
            backend=cast("BattleBackendName", self.backend),
            seed=seed,
            device=device,
            **(options if self.backend == "sc2" else {}),
        )
