"""What can be set about the plane with landmarks."""

from dataclasses import dataclass, field

import torch

from sipo_trl.envs.config.base import CriticScale, EnvConfig, KernelScale
from sipo_trl.envs.navigation import NavigationEnv


@dataclass
class NavigationConfig(EnvConfig):
    """2-D navigation to one of several landmarks."""

    name: str = "navigation"
    horizon: int = 1000
    quick_frames: int = 320_000
    full_frames: int = 320_000
    solved: float | None = 0.9
    stack: int = 1
    columns: list[str] = field(default_factory=lambda: ["landmark"])
    # Positions are comparable as they are. Walks to one landmark have a similarity of 0.002 to
    # 0.004, walks to two of up to 0.001, and a Wasserstein distance of 0.0004 or more.
    rbf: KernelScale = field(
        default_factory=lambda: KernelScale(
            delta=0.0015, alpha=200.0, unit=0.0004, variance=0.005, normalize=False
        )
    )
    wd: CriticScale = field(
        default_factory=lambda: CriticScale(delta=0.0002, alpha=500.0, unit=0.0002, normalize=False)
    )
    num_landmarks: int = 4
    """How many there are to find."""

    def make_single(self, num_envs: int, *, seed: int, device: torch.device | str) -> NavigationEnv:
        """Copies that share one layout, drawn from the seed."""
        return NavigationEnv(
            self.num_landmarks,
            batch_size=[num_envs],
            seed=seed,
            device=device,
            horizon=self.horizon,
        )
