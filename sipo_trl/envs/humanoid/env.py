"""A humanoid that learns to walk."""

from collections.abc import Sequence
from typing import Literal, get_args

import torch

from sipo_trl.envs.humanoid.model import FRAME_SKIP, humanoid_model
from sipo_trl.envs.humanoid.task import HumanoidTask
from sipo_trl.envs.locomotion import LocomotionEnv, RolloutSimulator, Simulator, WarpSimulator

Backend = Literal["mujoco", "mujoco_warp"]
# Those of environments of their own, with the same task and keys.
_OTHERS = {"isaacgym": "IsaacGymHumanoidEnv", "isaaclab": "IsaacLabHumanoidEnv"}


class HumanoidEnv(LocomotionEnv):
    """Thousands of humanoids that are paid to walk towards a target, as in Isaac Gym.

    The keys are those of :class:`~sipo_trl.envs.locomotion.LocomotionEnv`, with the observation
    [N, 108] of :class:`~sipo_trl.envs.humanoid.HumanoidTask`. Its columns 0:54, which hold no
    torque, force or action, are the ``diversity_state``. An episode terminates when the torso is
    below 0.8 m.

    Keyword Args:
        batch_size: number of copies [N].
        backend: what moves the bodies: ``"mujoco"`` on the CPU, or ``"mujoco_warp"``, which is for
            a GPU and runs on the CPU for tests.
        device: where the copies live; on the CPU if ``None``.
        seed: decides the start of every episode; from torch's global generator if ``None``.
        horizon: steps after which an episode is truncated.
        threads: how many copies ``"mujoco"`` steps at once; all cores of this process if ``None``.

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
        backend: Backend = "mujoco",
        device: torch.device | str | None = None,
        seed: int | None = None,
        horizon: int = 1000,
        threads: int | None = None,
    ) -> None:
        model = humanoid_model()
        device = torch.device(device or "cpu")
        simulator: Simulator
        if backend == "mujoco_warp":
            count = torch.Size(batch_size).numel()
            simulator = WarpSimulator(model, frame_skip=FRAME_SKIP, num_envs=count, device=device)
        elif backend != "mujoco":
            others = ", ".join(f"{name} ({env})" for name, env in _OTHERS.items())
            raise ValueError(
                f"backend is {backend!r}: choose from {', '.join(get_args(Backend))}, or, as "
                f"environments of their own, {others}."
            )
        elif device.type != "cpu":
            raise ValueError(
                f"device is {device}: the backend mujoco steps on the CPU; give device='cpu' or "
                "backend='mujoco_warp'."
            )
        else:
            simulator = RolloutSimulator(model, frame_skip=FRAME_SKIP, threads=threads)
        task = HumanoidTask(model, device=simulator.device, dtype=simulator.dtype)
        super().__init__(task, simulator, batch_size=batch_size, seed=seed, horizon=horizon)
