"""Stands in for IsaacGymEnvs; the environment variable ISAAC_STANDIN makes it misbehave."""

import os
import time
from types import SimpleNamespace

import isaacgym  # noqa: F401


def make(seed, task, num_envs, sim_device, rl_device, graphics_device_id=-1, headless=False):
    """The one task that there is."""
    assert task == "Humanoid"
    assert headless, "there is no screen"
    if os.environ.get("ISAAC_STANDIN") == "hang":
        time.sleep(3600)
    if os.environ.get("ISAAC_STANDIN") == "sizes":
        return SimpleNamespace(num_envs=num_envs, num_obs=75, num_acts=21)
    import torch

    from isaacgymenvs.humanoid import Humanoid

    torch.manual_seed(seed)
    return Humanoid(num_envs, sim_device, rl_device)
