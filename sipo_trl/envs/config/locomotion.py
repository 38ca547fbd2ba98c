"""What can be set about bodies that run."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import torch
from torch import Tensor
from torchrl.envs import EnvBase

from sipo_trl.envs.config.base import CriticScale, EnvConfig, KernelScale
from sipo_trl.envs.humanoid import (
    Backend,
    HumanoidEnv,
    HumanoidVisualEnv,
    IsaacGymHumanoidEnv,
    IsaacLabHumanoidEnv,
)
from sipo_trl.envs.locomotion import RunningEnv


@dataclass
class LocomotionConfig(EnvConfig):
    """The settings that all moving bodies share."""

    horizon: int = 1000
    quick_frames: int = 700_000
    full_frames: int = 20_000_000
    stack: int = 1  # velocities are among the states already
    columns: list[str] = field(default_factory=lambda: ["torque"])
    threads: int | None = None
    """How many copies are stepped at once; null for all cores."""

    def options(self, num_envs: int) -> dict[str, Any]:
        """What all these environments are made with."""
        return {"batch_size": [num_envs], "horizon": self.horizon, "threads": self.threads}


@dataclass
class HumanoidConfig(LocomotionConfig):
    """A humanoid that walks towards a target, as in Isaac Gym."""

    name: str = "humanoid"
    full_frames: int = 6_000_000
    # A policy that knows nothing of a runner has a Wasserstein distance of 0.6 to 0.8 per step from
    # it, whether it falls at once or runs, and if it runs a similarity of 0.3.
    wd: CriticScale = field(
        default_factory=lambda: CriticScale(
            delta=1.2, alpha=500.0, unit=0.4, mean_over="steps", batch_size=1024, saturation=2.5
        )
    )
    rbf: KernelScale = field(
        default_factory=lambda: KernelScale(
            delta=0.12, alpha=2000.0, unit=0.1, mean_over="steps", variance=1.0
        )
    )
    backend: str = "mujoco"
    """mujoco: on all cores; on a GPU (collector.device=cuda): mujoco_warp, isaacgym, isaaclab."""
    isaac_python: str | None = None
    """Path of the interpreter that has Isaac Gym; for the backend isaacgym only."""

    def make_single(self, num_envs: int, *, seed: int, device: torch.device | str) -> EnvBase:
        """Copies whose episodes start with joints a little off, drawn from the seed."""
        isaac: dict[str, Any] = {"batch_size": [num_envs], "horizon": self.horizon}
        isaac |= {"seed": seed, "device": device}
        if self.backend == "isaacgym":
            if self.isaac_python is None:
                raise ValueError(
                    "env.backend=isaacgym needs env.isaac_python=PATH: give the path of the Python "
                    "interpreter that has Isaac Gym."
                )
            return IsaacGymHumanoidEnv(**isaac, isaac_python=self.isaac_python)
        if self.backend == "isaaclab":
            return IsaacLabHumanoidEnv(**isaac)
        return HumanoidEnv(
            **self.options(num_envs),
            backend=cast("Backend", self.backend),
            seed=seed,
            device=device,
        )


@dataclass
class HumanoidVisualConfig(HumanoidConfig):
    """The same humanoid, with the measure looking at pictures of it."""

    name: str = "humanoid_visual"
    stack: int = 4  # a single picture shows no motion
    views: int | None = 128
    # Two early gaits that know nothing of each other are 0.1 to 0.2 apart, per step.
    wd: CriticScale = field(
        default_factory=lambda: CriticScale(
            delta=0.3, alpha=2000.0, unit=0.1, mean_over="steps", batch_size=64
        )
    )

    def make_single(
        self, num_envs: int, *, seed: int, device: torch.device | str
    ) -> HumanoidVisualEnv:
        """Copies whose diversity state is their pose."""
        return HumanoidVisualEnv(
            **self.options(num_envs),
            backend=cast("Backend", self.backend),
            seed=seed,
            device=device,
        )

    def make_view(self) -> Callable[[Tensor], Tensor]:
        """What draws stacked poses."""
        from sipo_trl.envs.humanoid.pictures import HumanoidPictures

        return HumanoidPictures()


@dataclass
class RunningConfig(LocomotionConfig):
    """One of gymnasium's bodies, which is paid for running."""

    def make_single(self, num_envs: int, *, seed: int, device: torch.device | str) -> RunningEnv:
        """Copies whose episodes start a little off their rest, drawn from the seed."""
        return RunningEnv(self.name, **self.options(num_envs), seed=seed, device=device)


@dataclass
class HalfCheetahConfig(RunningConfig):
    """HalfCheetah-v5."""

    name: str = "halfcheetah"


@dataclass
class Walker2dConfig(RunningConfig):
    """Walker2d-v5."""

    name: str = "walker2d"


@dataclass
class AntConfig(RunningConfig):
    """Ant-v5."""

    name: str = "ant"


@dataclass
class HumanoidV5Config(RunningConfig):
    """Humanoid-v5, for comparison with the literature."""

    name: str = "humanoid_v5"
