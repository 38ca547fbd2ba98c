"""The task, with IsaacGymEnvs' interface and its habits, without its physics."""

import os

import torch


class Humanoid:
    """A vectorised task, as IsaacGymEnvs makes them.

    A body sinks by its first action and otherwise shows what was done to it, so that tests can
    predict every number.
    """

    max_episode_length = 1000

    def __init__(self, num_envs, sim_device, rl_device):
        self.num_envs, self.num_acts = num_envs, 21
        self.num_obs = 108
        self.device, self.rl_device = sim_device, rl_device
        self.obs_buf = torch.zeros(num_envs, self.num_obs, device=sim_device)
        self.rew_buf = torch.zeros(num_envs, device=sim_device)
        # All copies are flagged from the beginning: the first step resets them.
        self.reset_buf = torch.ones(num_envs, dtype=torch.long, device=sim_device)
        self.progress_buf = torch.zeros_like(self.reset_buf)
        self.episode = torch.zeros_like(self.reset_buf)
        self.height = torch.zeros(num_envs, device=sim_device)
        self.noise = torch.zeros(num_envs, device=sim_device)
        self.extras, self.obs_dict = {}, {}

    def step(self, actions):
        """Physics, then the resets that the step before asked for, then observations."""
        if os.environ.get("ISAAC_STANDIN") == "raise":
            raise RuntimeError("PhysX has run out of memory")
        self.actions = actions.clamp(-1, 1).to(self.device)
        self.height -= 0.1 * self.actions[:, 0]
        self.progress_buf += 1
        ids = self.reset_buf.nonzero(as_tuple=False).flatten()
        if len(ids) > 0:
            self.reset_idx(ids)
        self.compute_observations()
        self.compute_reward()
        late = self.progress_buf >= self.max_episode_length - 1
        self.extras["time_outs"] = (late & (self.reset_buf != 0)).to(self.rl_device)
        self.obs_dict["obs"] = self.obs_buf.clamp(-5, 5).to(self.rl_device)
        return self.obs_dict, self.rew_buf, self.reset_buf, self.extras

    def reset_idx(self, ids):
        """Puts some copies back on their feet."""
        self.height[ids] = 1.34
        self.noise[ids] = torch.rand(len(ids), device=self.device)
        self.episode[ids] += 1
        self.progress_buf[ids] = 0
        self.reset_buf[ids] = 0

    def compute_observations(self):
        """The columns that have a meaning here: the rest is zero."""
        self.obs_buf[:, 0] = self.height
        self.obs_buf[:, 1] = self.progress_buf * 0.001
        self.obs_buf[:, 2] = self.episode * 0.01
        self.obs_buf[:, 3] = torch.arange(self.num_envs) * 0.1
        self.obs_buf[:, 4] = self.noise
        self.obs_buf[:, 54:75] = 0.7 * self.actions
        self.obs_buf[:, -21:] = self.actions

    def compute_reward(self):
        """Two for being alive and the second action on top, -1 for a fall."""
        fallen = self.height < 0.8
        self.rew_buf[:] = torch.where(fallen, torch.tensor(-1.0), 2 + self.actions[:, 1])
        over = fallen | (self.progress_buf >= self.max_episode_length - 1)
        self.reset_buf = torch.where(over, torch.ones_like(self.reset_buf), self.reset_buf)
