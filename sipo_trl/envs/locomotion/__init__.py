"""The machinery of environments in which bodies move, many copies at once.

- :class:`LocomotionEnv`: the TorchRL environment around the two that follow;
- :class:`Task`: start, observation, reward and end of episodes, with :class:`Outcome`;
- :class:`Simulator`: what moves bodies, from one :class:`Motion` to the next;
- :class:`RolloutSimulator`, :class:`ThreadedSimulator`: MuJoCo on all cores, the latter with a
  view of inner quantities; :class:`WarpSimulator`: MuJoCo on a GPU;
- :class:`RunningEnv`: gymnasium's bodies, with :class:`GymnasiumTask` and its table ``RUNNING`` of
  :class:`Running`;
- :func:`set_motion_specs`: what they all promise to report.
"""

from sipo_trl.envs.locomotion.env import LocomotionEnv
from sipo_trl.envs.locomotion.gymnasium_env import RunningEnv
from sipo_trl.envs.locomotion.gymnasium_task import RUNNING, GymnasiumTask, Running
from sipo_trl.envs.locomotion.rollout import RolloutSimulator
from sipo_trl.envs.locomotion.simulator import Motion, Simulator
from sipo_trl.envs.locomotion.specs import set_motion_specs
from sipo_trl.envs.locomotion.task import Outcome, Task
from sipo_trl.envs.locomotion.threads import ThreadedSimulator
from sipo_trl.envs.locomotion.warp import WarpSimulator

__all__ = [
    "RUNNING",
    "GymnasiumTask",
    "LocomotionEnv",
    "Motion",
    "Outcome",
    "RolloutSimulator",
    "Running",
    "RunningEnv",
    "Simulator",
    "Task",
    "ThreadedSimulator",
    "WarpSimulator",
    "set_motion_specs",
]
