"""What can be set about football."""

from dataclasses import dataclass, field
from typing import cast

import torch
from omegaconf import MISSING
from torchrl.envs import EnvBase

from sipo_trl.envs.config.base import CriticScale, EnvConfig, KernelScale
from sipo_trl.envs.football import FootballEnv
from sipo_trl.envs.football.scenario import HORIZON
from sipo_trl.envs.football.specs import Diversity


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
