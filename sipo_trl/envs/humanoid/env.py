"""A humanoid that learns to walk."""

from collections.abc import Sequence

import torch

from sipo_trl.envs.humanoid.task import HumanoidTask
from sipo_trl.envs.locomotion import LocomotionEnv, RolloutSimulator


class HumanoidEnv(LocomotionEnv):
    """Thousands of humanoids that are paid to walk towards a target, as in Isaac Gym.

    The keys are those of :class:`~sipo_trl.envs.locomotion.LocomotionEnv`, with the observation
    [N, 108] of :class:`~sipo_trl.envs.humanoid.HumanoidTask`. Its columns 0:54, which hold no
    torque, force or action, are the ``diversity_state``. An episode terminates when the torso is
    below 0.8 m.

    Keyword Args:
        batch_size: number of copies [N].
        device: where the copies live.
        seed: decides the start of every episode; from torch's global generator if ``None``.
        horizon: steps after which an episode is truncated.
        threads: how many copies are stepped at once; all cores of this process if ``None``.

    Examples:
        >>> env = HumanoidEnv(batch_size=[4], seed=0)
        >>> rollout = env.rollout(max_steps=3)
        >>> rollout["observation"].shape, rollout["next", "torque"].shape
        (torch.Size([4, 3, 108]), torch.Size([4, 3, 21]))
        >>> snapshot = env.state_dict()  # restores the bodies in the midst of their motion
        >>> _ = HumanoidEnv(batch_size=[4]).load_state_dict(snapshot)
    """

    def __init__(
        self,
        *,
        batch_size: Sequence[int],
        device: torch.device | str | None = None,
        seed: int | None = None,
        horizon: int = 1000,
        threads: int | None = None,
    ) -> None:
        task = HumanoidTask(device="cpu", dtype=torch.float64)
        if torch.device(device or "cpu").type != "cpu":
            raise ValueError(
                f"device is {device}: HumanoidEnv steps on the CPU; give device='cpu'."
            )
        simulator = RolloutSimulator(task.model, frame_skip=task.frame_skip, threads=threads)
        super().__init__(task, simulator, batch_size=batch_size, seed=seed, horizon=horizon)
