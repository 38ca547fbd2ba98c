"""Registers the one task that there is."""

import gymnasium

gymnasium.register(
    "Isaac-Humanoid-Direct-v0",
    entry_point="isaaclab.envs:DirectRLEnv",
    disable_env_checker=True,
)
