"""The base classes that TorchRL looks for."""

import math
from types import SimpleNamespace

import gymnasium
import numpy as np
import torch

from isaaclab.app import running

if not running:
    raise ModuleNotFoundError("No module named 'omni': the application is not running")


class ManagerBasedEnv(gymnasium.Env):
    """Not used here."""


class DirectMARLEnv(gymnasium.Env):
    """Not used here."""


class DirectRLEnv(gymnasium.Env):
    """Isaac Lab's interface and its habits, without its physics.

    A body sinks by its first action and otherwise shows what was done to it, so that tests can
    predict every number.
    """

    instances = 0

    def __init__(self, cfg):
        if DirectRLEnv.instances:
            raise RuntimeError("Simulation context already exists. Cannot create a new one.")
        DirectRLEnv.instances += 1
        self.cfg, self.num_envs, self.device = cfg, cfg.num_envs, cfg.device
        self.max_episode_length = math.ceil(cfg.episode_length_s / (cfg.sim.dt * cfg.decimation))
        count = self.num_envs
        # The spaces are of a plain tensor, although a dictionary is returned.
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (count, 75))
        self.action_space = gymnasium.spaces.Box(-np.inf, np.inf, (count, 21))
        self.actions = torch.zeros(count, 21)
        self.height, self.noise = torch.zeros(count), torch.zeros(count)
        self.episode_length_buf = torch.zeros(count, dtype=torch.long)
        # Written in place ever after.
        self.reset_terminated = torch.zeros(count, dtype=torch.bool)
        self.reset_time_outs = torch.zeros(count, dtype=torch.bool)
        self.robot = SimpleNamespace(data=SimpleNamespace(applied_torque=torch.zeros(count, 21)))
        self.scene = SimpleNamespace(write_data_to_sim=lambda: None)
        self.sim = SimpleNamespace(forward=lambda: None)
        self.extras = {}

    @staticmethod
    def seed(seed=-1):
        """Seeds everything there is."""
        torch.manual_seed(seed)
        return seed

    def reset(self, seed=None, options=None):
        """All copies."""
        if seed is not None:
            self.seed(seed)
        self._reset_idx(torch.arange(self.num_envs))
        return self._get_observations(), self.extras

    def step(self, action):
        """Physics, ends, rewards, resets, and only then the observations."""
        self.actions = action.clone()
        self.height -= 0.1 * action[:, 0]
        self.robot.data.applied_torque[:] = 70 * action
        self.episode_length_buf += 1
        self.reset_terminated[:] = self.height < 0.8
        self.reset_time_outs[:] = self.episode_length_buf >= self.max_episode_length - 1
        reward = torch.where(self.reset_terminated, torch.tensor(-1.0), 2 + action[:, 1])
        ids = (self.reset_terminated | self.reset_time_outs).nonzero().squeeze(-1)
        if len(ids) > 0:
            self._reset_idx(ids)
        observations = self._get_observations()
        return observations, reward, self.reset_terminated, self.reset_time_outs, self.extras

    def _reset_idx(self, ids):
        self.height[ids] = 1.34
        self.noise[ids] = torch.rand(len(ids))
        self.episode_length_buf[ids] = 0
        self.robot.data.applied_torque[ids] = -999  # whatever it is, it is no torque of the step

    def _get_observations(self):
        index = torch.arange(self.num_envs)
        first = [self.height, 0.001 * self.episode_length_buf, self.noise, 0.1 * index]
        rest = torch.zeros(self.num_envs, 50)
        return {"policy": torch.cat([torch.stack(first, -1), rest, self.actions], -1)}
