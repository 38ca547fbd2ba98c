"""The machinery of environments in which bodies move, many copies at once.

- :class:`LocomotionEnv`: the TorchRL environment around the two that follow;
- :class:`Task`: start, observation, reward and end of episodes, with :class:`Outcome`;
- :class:`Simulator`: what moves bodies, from one :class:`Motion` to the next;
- :class:`RolloutSimulator`: MuJoCo on all cores;
- :func:`counter_uniform`: random numbers without a generator's state.
"""

from sipo_trl.envs.locomotion.env import LocomotionEnv
from sipo_trl.envs.locomotion.noise import counter_uniform
from sipo_trl.envs.locomotion.rollout import RolloutSimulator
from sipo_trl.envs.locomotion.simulator import Motion, Simulator
from sipo_trl.envs.locomotion.task import Outcome, Task

__all__ = [
    "LocomotionEnv",
    "Motion",
    "Outcome",
    "RolloutSimulator",
    "Simulator",
    "Task",
    "counter_uniform",
]
