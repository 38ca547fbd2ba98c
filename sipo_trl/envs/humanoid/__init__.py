"""A humanoid that learns to walk, as in Isaac Gym.

- :class:`HumanoidEnv`: the environment;
- :class:`HumanoidTask`: its observations, reward and end;
- :func:`humanoid_model`: the body.
"""

from sipo_trl.envs.humanoid.env import HumanoidEnv
from sipo_trl.envs.humanoid.model import humanoid_model
from sipo_trl.envs.humanoid.task import HumanoidTask

__all__ = ["HumanoidEnv", "HumanoidTask", "humanoid_model"]
