"""A humanoid that learns to walk, as in Isaac Gym.

- :class:`HumanoidEnv`: the environment, on one of several simulators (``Backend``);
- :class:`HumanoidVisualEnv`: the same, told apart by how it looks; what draws it is
  :class:`sipo_trl.envs.humanoid.pictures.HumanoidPictures`;
- :class:`HumanoidTask`: its observations, reward and end;
- :func:`humanoid_model`: the body;
- :class:`IsaacGymHumanoidEnv`: the original in Isaac Gym, by way of an :class:`IsaacGymServer`;
- :class:`IsaacLabHumanoidEnv`: its successor in Isaac Lab;
- :class:`IsaacHumanoidEnv`: what these two have in common.
"""

from sipo_trl.envs.humanoid.env import Backend, HumanoidEnv
from sipo_trl.envs.humanoid.isaac import IsaacHumanoidEnv
from sipo_trl.envs.humanoid.isaac_gym import IsaacGymHumanoidEnv
from sipo_trl.envs.humanoid.isaac_gym_process import IsaacGymServer
from sipo_trl.envs.humanoid.isaac_lab import IsaacLabHumanoidEnv
from sipo_trl.envs.humanoid.model import humanoid_model
from sipo_trl.envs.humanoid.task import HumanoidTask
from sipo_trl.envs.humanoid.visual import HumanoidVisualEnv

__all__ = [
    "Backend",
    "HumanoidEnv",
    "HumanoidTask",
    "HumanoidVisualEnv",
    "IsaacGymHumanoidEnv",
    "IsaacGymServer",
    "IsaacHumanoidEnv",
    "IsaacLabHumanoidEnv",
    "humanoid_model",
]
