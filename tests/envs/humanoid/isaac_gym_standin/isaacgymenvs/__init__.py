"""Stands in for IsaacGymEnvs; the environment variable ISAAC_STANDIN makes it misbehave."""

import os
import time
from types import SimpleNamespace

import isaacgym  # noqa: F401


def make(seed, task, num_envs, sim_device, rl_device, graphics_device_id=-1, headless=False):
    """The one task that there is."""
    assert task == "Humanoid"
    assert headless, "there is no screen"
    misbehaviour = os.environ.get("ISAAC_STANDIN")
    if misbehaviour == "hang":
        time.sleep(3600)
    if misbehaviour in ("idle", "sizes"):
        num_obs = 108 if misbehaviour == "idle" else 75
        return SimpleNamespace(num_envs=num_envs, num_obs=num_obs, num_acts=21)
    import torch

    from isaacgymenvs.humanoid import Humanoid

    torch.manual_seed(seed)
    return Humanoid(num_envs, sim_device, rl_device)
