"""What can be set about an environment, and how it is made from that."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import torch
from omegaconf import MISSING
from torchrl.envs import CatFrames, EnvBase, TransformedEnv

from sipo_trl.envs.navigation import NavigationEnv


@dataclass
class EnvConfig(ABC):
    """The settings that all environments share."""

    name: str = MISSING
    horizon: int = MISSING
    """The longest that an episode can be."""
    quick_frames: int = MISSING
    """Environment steps per policy with budget=quick."""
    full_frames: int = MISSING
    """Environment steps per policy with budget=full."""
    solved: float | None = None
    """Return from which the task counts as solved; null if there is no such mark."""
    stack: int = 4
    """How many recent diversity states are joined into one."""
    columns: list[str] = field(default_factory=list)
    """Further entries of each step that the archive keeps, for evaluation."""

    @abstractmethod
    def make_single(self, num_envs: int, *, seed: int, device: torch.device | str) -> EnvBase:
        """The environment itself, ``num_envs`` copies of it."""

    def make(self, num_envs: int, *, seed: int, device: torch.device | str = "cpu") -> EnvBase:
        """The environment with its recent diversity states stacked.

        Args:
            num_envs: number of copies that step together.
            seed: decides the world, and the course of environments that draw.
            device: where the copies live.
        """
        env = self.make_single(num_envs, seed=seed, device=device)
        if self.stack == 1:
            return env
        return TransformedEnv(env, CatFrames(self.stack, dim=-1, in_keys=["diversity_state"]))


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


ENVS: dict[str, type[EnvConfig]] = {config.name: config for config in (NavigationConfig,)}
"""Environments by name."""
