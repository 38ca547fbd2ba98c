"""What can be set about an environment, and how it is made from that."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import torch
from omegaconf import MISSING
from torch import Tensor
from torchrl.envs import CatFrames, EnvBase, TransformedEnv

from sipo_trl.envs.football import FootballEnv
from sipo_trl.envs.football.scenario import HORIZON
from sipo_trl.envs.football.specs import Diversity
from sipo_trl.envs.humanoid import (
    Backend,
    HumanoidEnv,
    HumanoidVisualEnv,
    IsaacGymHumanoidEnv,
    IsaacLabHumanoidEnv,
)
from sipo_trl.envs.locomotion import RunningEnv
from sipo_trl.envs.navigation import NavigationEnv
from sipo_trl.envs.smac import SMACEnv, map_names
from sipo_trl.envs.smac.env import Backend as BattleBackendName


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


@dataclass
class FootballConfig(EnvConfig):
    """The settings that all football scenarios share."""

    horizon: int = HORIZON
    """The longest that an episode can be; follows from frame_skip."""
    quick_frames: int = 1_000_000
    full_frames: int = 25_000_000
    solved: float | None = 1.6  # an episode that is won returns 2
    columns: list[str] = field(default_factory=lambda: ["position", "ball"])
    # A team that wins half of its matches of 3v1, in 60 steps, has with drawn actions a similarity
    # of 0.00096 to its own most likely ones, and of 0.00024 to what they are in a mirror; by
    # Wasserstein distance 0.05 and 0.1.
    rbf: KernelScale = field(
        default_factory=lambda: KernelScale(delta=4e-4, alpha=1000.0, unit=4e-4)
    )
    wd: CriticScale = field(default_factory=lambda: CriticScale(delta=0.07, alpha=3.0, unit=0.07))
    scenario: str = MISSING
    """What gfootball calls it."""
    diversity: str = "attackers"
    """What tells policies apart: attackers, full, random or state_action."""
    frame_skip: int = 1
    """Steps of the engine per action: more reach the goal with fewer decisions."""
    workers: int | None = None
    """How many processes play; null for one per core."""
    practice: float = 0.0
    """The share of episodes that begin with an attack under way while a policy learns, below 1.
    They count for nothing else: no figure, no distance, no archive."""

    def __post_init__(self) -> None:
        if not 0 <= self.practice < 1:
            raise ValueError(
                f"env.practice is {self.practice}: give a share below 1, so that some episodes are "
                "the task itself"
            )
        self.horizon = -(-HORIZON // self.frame_skip)

    def make_single(self, num_envs: int, *, seed: int, device: torch.device | str) -> FootballEnv:
        """Copies whose episodes take a course that the seed decides."""
        return self._make_matches(num_envs, seed=seed, device=device, practice=0.0)

    def make_practice(
        self, num_envs: int, *, seed: int, device: torch.device | str = "cpu"
    ) -> EnvBase:
        """The same, of which some begin with an attack under way."""
        matches = self._make_matches(num_envs, seed=seed, device=device, practice=self.practice)
        return self._stacked(matches)

    def _make_matches(
        self, num_envs: int, *, seed: int, device: torch.device | str, practice: float
    ) -> FootballEnv:
        return FootballEnv(
            self.scenario,
            batch_size=[num_envs],
            seed=seed,
            workers=self.workers,
            device=device,
            frame_skip=self.frame_skip,
            diversity=cast("Diversity", self.diversity),
            practice=practice,
        )


@dataclass
class Football3v1Config(FootballConfig):
    """Three attackers against a defender and a keeper."""

    name: str = "football_3v1"
    scenario: str = "academy_3_vs_1_with_keeper"


@dataclass
class FootballCounterattackConfig(FootballConfig):
    """Eleven against eleven, most of whom are left behind."""

    name: str = "football_counterattack"
    scenario: str = "academy_counterattack_easy"


@dataclass
class FootballCornerConfig(FootballConfig):
    """Eleven against eleven, from the corner."""

    name: str = "football_corner"
    full_frames: int = 50_000_000
    scenario: str = "academy_corner"


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


ENVS: dict[str, type[EnvConfig]] = {
    config.name: config
    for config in (
        NavigationConfig,
        HumanoidConfig,
        HumanoidVisualConfig,
        HalfCheetahConfig,
        Walker2dConfig,
        AntConfig,
        HumanoidV5Config,
        Football3v1Config,
        FootballCounterattackConfig,
        FootballCornerConfig,
    )
} | {f"smac_{name}": SMACConfig for name in sorted(map_names())}
"""Environments by name."""
