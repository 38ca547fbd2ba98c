"""What can be set about an environment, and how it is made from that.

A file for each domain; :data:`ENVS` has them all by name.
"""

from sipo_trl.envs.config.base import CriticScale, DistanceScale, EnvConfig, KernelScale
from sipo_trl.envs.config.football import (
    Football3v1Config,
    FootballConfig,
    FootballCornerConfig,
    FootballCounterattackConfig,
)
from sipo_trl.envs.config.locomotion import (
    AntConfig,
    HalfCheetahConfig,
    HumanoidConfig,
    HumanoidV5Config,
    HumanoidVisualConfig,
    LocomotionConfig,
    RunningConfig,
    Walker2dConfig,
)
from sipo_trl.envs.config.navigation import NavigationConfig
from sipo_trl.envs.config.smac import SMACConfig
from sipo_trl.envs.smac import map_names

__all__ = [
    "ENVS",
    "AntConfig",
    "CriticScale",
    "DistanceScale",
    "EnvConfig",
    "Football3v1Config",
    "FootballConfig",
    "FootballCornerConfig",
    "FootballCounterattackConfig",
    "HalfCheetahConfig",
    "HumanoidConfig",
    "HumanoidV5Config",
    "HumanoidVisualConfig",
    "KernelScale",
    "LocomotionConfig",
    "NavigationConfig",
    "RunningConfig",
    "SMACConfig",
    "Walker2dConfig",
]

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
