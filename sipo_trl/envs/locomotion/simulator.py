"""What steps the bodies of an environment, without a memory of its own."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import mujoco
import torch
from torch import Tensor


@dataclass
class Motion:
    """Where bodies are and how they got there.

    Attributes:
        qpos: generalised positions [N, nq].
        qvel: generalised velocities [N, nv].
        warmstart: accelerations [N, nv] from which the next step's solver starts.
        sensors: what was measured in the last physics step [N, S].
    """

    qpos: Tensor
    qvel: Tensor
    warmstart: Tensor
    sensors: Tensor


class Simulator(ABC):
    """Steps many copies of one model; all that it needs to know comes with each call.

    Args:
        model: what is simulated.
        frame_skip: physics steps per call.
        device: where the motions live.
        dtype: their precision.

    Attributes:
        num_sensors: how many numbers a motion's sensors are.
        begins_with_tensors: whether :meth:`begin` is operations on tensors alone, to be compiled.
    """

    begins_with_tensors = True

    def __init__(
        self,
        model: mujoco.MjModel,
        *,
        frame_skip: int,
        device: torch.device | str | None,
        dtype: torch.dtype,
    ) -> None:
        self.model, self.frame_skip = model, frame_skip
        self.device, self.dtype = device, dtype
        self.num_sensors: int = model.nsensordata

    def begin(self, qpos: Tensor, qvel: Tensor) -> Motion:
        """The motion of bodies that have not moved yet: with sensors of zero.

        Args:
            qpos: where they are [N, nq].
            qvel: how fast they begin [N, nv].
        """
        sensors = qvel.new_zeros(len(qvel), self.num_sensors)
        return Motion(qpos, qvel, torch.zeros_like(qvel), sensors)

    @abstractmethod
    def step(self, motion: Motion, control: Tensor) -> Motion:
        """The motion after ``frame_skip`` physics steps.

        Args:
            motion: where the copies start; left as it is.
            control: what the actuators are told all the while [N, nu].
        """
