"""MuJoCo on all cores of the CPU."""

import mujoco
import torch
from mujoco.rollout import Rollout
from torch import Tensor

from sipo_trl.envs.cores import all_cores
from sipo_trl.envs.locomotion.simulator import Motion, Simulator

_CONTROL = int(mujoco.mjtState.mjSTATE_CTRL)
_PHYSICS = int(mujoco.mjtState.mjSTATE_FULLPHYSICS)


class RolloutSimulator(Simulator):
    """Steps all copies with one call of ``mujoco.rollout``, in double precision.

    The result depends neither on the number of threads nor on what was stepped before.

    Args:
        model: what is simulated; without muscles, plugins and other state beside positions and
            velocities.

    Keyword Args:
        frame_skip: physics steps per call.
        threads: how many step at once; all cores of this process if ``None``.

    Examples:
        >>> model = mujoco.MjModel.from_xml_string(
        ...     "<mujoco><worldbody><body><freejoint/><geom size='.1'/></body></worldbody></mujoco>"
        ... )
        >>> simulator = RolloutSimulator(model, frame_skip=5, threads=1)
        >>> rest = torch.zeros(2, 6, dtype=torch.float64)
        >>> here = torch.tensor([[0.0, 0, 1, 1, 0, 0, 0]] * 2, dtype=torch.float64)
        >>> fallen = simulator.step(Motion(here, rest, rest, rest[:, :0]), rest[:, :0])
        >>> round(fallen.qvel[0, 2].item(), 4)  # 5 x 2 ms of gravity
        -0.0981
    """

    def __init__(
        self, model: mujoco.MjModel, *, frame_skip: int, threads: int | None = None
    ) -> None:
        super().__init__(model, frame_skip=frame_skip, device="cpu", dtype=torch.float64)
        if mujoco.mj_stateSize(model, _PHYSICS) != 1 + model.nq + model.nv:
            raise ValueError(
                "The model has state beside positions and velocities: take out its muscles, "
                "delays and plugins, which a RolloutSimulator does not keep."
            )
        threads = threads or all_cores()
        self._rollout = Rollout(nthread=threads)
        self._data = [mujoco.MjData(model) for _ in range(threads)]

    def step(self, motion: Motion, control: Tensor) -> Motion:
        """The motion after ``frame_skip`` physics steps."""
        model, skip, count = self.model, self.frame_skip, len(control)
        # Nothing depends on the time, which is therefore not kept.
        start = torch.cat([motion.qpos.new_zeros(count, 1), motion.qpos, motion.qvel], -1)
        control = control.to(self.dtype).unsqueeze(1).expand(-1, skip, -1).contiguous()
        states = start.new_empty(count, skip, start.shape[-1])
        sensors = start.new_empty(count, skip, model.nsensordata)
        self._rollout.rollout(
            [model] * count,
            self._data,
            start.numpy(),
            control.numpy(),
            control_spec=_CONTROL,
            skip_checks=True,
            nstep=skip,
            # By itself it hands out tenths of a thread's share, which is more often than it helps.
            chunk_size=max(1, min(32, count // len(self._data))),
            initial_warmstart=motion.warmstart.numpy(),
            state=states.numpy(),
            sensordata=sensors.numpy(),
        )
        end = states[:, -1]
        qpos, qvel = end[:, 1 : 1 + model.nq], end[:, 1 + model.nq :]
        before = states[:, -2, 1 + model.nq :] if skip > 1 else motion.qvel
        # The last change of velocity is close to the acceleration that MuJoCo would start from,
        # which rollout does not return.
        warmstart = (qvel - before) / model.opt.timestep
        return Motion(qpos, qvel, warmstart, sensors[:, -1])
