"""Gymnasium's running bodies, many copies at once."""

from collections.abc import Sequence

import torch

from sipo_trl.envs.locomotion.env import LocomotionEnv
from sipo_trl.envs.locomotion.gymnasium_task import RUNNING, GymnasiumTask
from sipo_trl.envs.locomotion.threads import ThreadedSimulator


class RunningEnv(LocomotionEnv):
    """Copies of one of gymnasium's MuJoCo bodies, which are paid for running.

    Observation, reward and end are those of gymnasium's own environments, version 5. The
    ``diversity_state`` leaves out external forces and torques.

    Args:
        name: ``"halfcheetah"``, ``"walker2d"``, ``"ant"`` or ``"humanoid_v5"``.

    Keyword Args:
        batch_size: number of copies [N].
        device: where the copies live: on the CPU.
        seed: decides the start of every episode; from torch's global generator if ``None``.
        horizon: steps after which an episode is truncated.
        threads: how many copies are stepped at once; all cores of this process if ``None``.

    Examples:
        >>> env = RunningEnv("walker2d", batch_size=[4], seed=0)
        >>> env.rollout(max_steps=3)["next", "observation"].shape
        torch.Size([4, 3, 17])
    """

    def __init__(
        self,
        name: str,
        *,
        batch_size: Sequence[int],
        device: torch.device | str | None = None,
        seed: int | None = None,
        horizon: int = 1000,
        threads: int | None = None,
    ) -> None:
        if name not in RUNNING:
            raise ValueError(f"There is no body {name!r}: choose from {', '.join(RUNNING)}.")
        if torch.device(device or "cpu").type != "cpu":
            raise ValueError(f"device is {device}: RunningEnv steps on the CPU; give 'cpu'.")
        task = GymnasiumTask(RUNNING[name])
        simulator = ThreadedSimulator(
            task.model, frame_skip=task.frame_skip, arrays=task.columns, threads=threads
        )
        super().__init__(task, simulator, batch_size=batch_size, seed=seed, horizon=horizon)
