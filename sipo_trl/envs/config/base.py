"""What can be set about every environment."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from omegaconf import MISSING
from torch import Tensor
from torchrl.envs import CatFrames, EnvBase, TransformedEnv


@dataclass
class DistanceScale:
    """How far apart policies of an environment are, in a measure's own units."""

    delta: float = 0.01
    """The distance, or with an RBF kernel the similarity, that is asked for."""
    alpha: float = 1.0
    """What brings such distances to the size of the task's return."""
    unit: float = 0.01
    """The violation by which a dual step moves a multiplier by its whole step size."""
    normalize: bool = True
    """Bring features to comparable scales first."""
    mean_over: str = "horizon"
    """What distances are means over: horizon, or steps, those that an episode had."""


@dataclass
class KernelScale(DistanceScale):
    """The same for an RBF kernel."""

    delta: float = 0.1
    unit: float = 0.1
    variance: float = 0.02
    """Width of the kernel."""


@dataclass
class CriticScale(DistanceScale):
    """The same for learned critics."""

    batch_size: int = 4096
    """The most states of each policy that one update of the critics looks at."""
    saturation: float | None = None
    """Distance of a state from which further away pays no more; null for none."""


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
    rbf: KernelScale = field(default_factory=KernelScale)
    """What measure=rbf means here."""
    wd: CriticScale = field(default_factory=CriticScale)
    """What measure=wd means here."""
    views: int | None = None
    """How many states of a batch are looked at where that is costly; null: all, as they are."""

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
        return self._stacked(self.make_single(num_envs, seed=seed, device=device))

    def make_practice(
        self, num_envs: int, *, seed: int, device: torch.device | str = "cpu"
    ) -> EnvBase:
        """What policies learn in: the task itself, unless there are easier starts to learn from.

        The arguments are those of :meth:`make`.
        """
        return self.make(num_envs, seed=seed, device=device)

    def _stacked(self, env: EnvBase) -> EnvBase:
        if self.stack == 1:
            return env
        return TransformedEnv(env, CatFrames(self.stack, dim=-1, in_keys=["diversity_state"]))

    def make_view(self) -> Callable[[Tensor], Tensor]:
        """What turns diversity states [n, F] into what is compared; asked for if ``views`` is set.

        Raises:
            RuntimeError: if that cannot be done on this machine.
        """
        raise NotImplementedError(f"{self.name} has no views: leave env.views at null.")
