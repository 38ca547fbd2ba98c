"""What bodies are to do: the part of an environment that is not physics."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import mujoco
from torch import Tensor

from sipo_trl.envs.locomotion.simulator import Motion


@dataclass
class Outcome:
    """What a step led to.

    Attributes:
        observation: what the policy sees [N, O].
        torque: what acts on the joints [N, nu].
        reward: what the step is worth [N, 1].
        terminated: whether the episode must end [N, 1], bool.
    """

    observation: Tensor
    torque: Tensor
    reward: Tensor
    terminated: Tensor


class Task(ABC):
    """Start, observation, reward and end of an episode, for all copies at once.

    Every method is a function of its arguments alone and runs on any device.

    Attributes:
        model: the body and its world.
        frame_skip: physics steps per action.
        action_bound: greatest magnitude of an action's components, which are clipped to it.
        observation_size: number O of observations.
        diversity_columns: which observations tell policies apart: a slice.
        noise_size: how many uniform numbers the start of an episode takes.
        broken_reward: what a step is worth in which the physics broke down.
    """

    model: mujoco.MjModel
    frame_skip: int
    action_bound: float
    observation_size: int
    diversity_columns: slice
    noise_size: int
    broken_reward: float

    @abstractmethod
    def start(self, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Positions [N, nq] and velocities [N, nv] at the start of episodes.

        Args:
            noise: uniform numbers in [0, 1) [N, noise_size].
        """

    @abstractmethod
    def observe(self, motion: Motion, action: Tensor) -> tuple[Tensor, Tensor]:
        """The observation [N, O] and the torques [N, nu].

        Args:
            motion: the state of the bodies.
            action: what was done [N, nu].
        """

    def observe_start(self, motion: Motion) -> tuple[Tensor, Tensor]:
        """The observation [N, O] and the torques [N, nu] at the start of episodes.

        Args:
            motion: bodies that have not moved yet.
        """
        return self.observe(motion, motion.qpos.new_zeros(len(motion.qpos), self.model.nu).float())

    @abstractmethod
    def step(self, before: Motion, after: Motion, action: Tensor) -> Outcome:
        """What an action led to.

        Args:
            before: the state in which it was taken.
            after: the state that followed.
            action: what was done [N, nu], within its bounds.
        """
