"""MuJoCo on all cores of the CPU, with a view of its inner quantities."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

import mujoco
import numpy as np
import torch
from torch import Tensor

from sipo_trl.envs.cores import all_cores
from sipo_trl.envs.locomotion.simulator import Motion, Simulator

_BITS = mujoco.mjtState
# In the order in which MuJoCo lays them out.
_START = int(_BITS.mjSTATE_QPOS | _BITS.mjSTATE_QVEL | _BITS.mjSTATE_WARMSTART | _BITS.mjSTATE_CTRL)
_END = int(_BITS.mjSTATE_QPOS | _BITS.mjSTATE_QVEL | _BITS.mjSTATE_WARMSTART)


class ThreadedSimulator(Simulator):
    """Steps the copies one by one on several threads, and reads arrays that no sensor gives.

    ``mujoco.rollout`` returns states and sensors only. What gymnasium's ant and humanoid see
    (inertias, external forces) belongs to neither, and with a Runge-Kutta integrator it is not
    even a function of the state at the end of a step; nor does it return what the solver starts
    from, without which a long motion is not MuJoCo's to the last digit. Hence a Python loop, whose
    20 us per copy are little beside a Runge-Kutta step's hundreds.

    Args:
        model: what is simulated.

    Keyword Args:
        frame_skip: physics steps per call.
        arrays: fields of ``MjData`` to read, and where they stand, flattened, in a motion's
            sensors.
        threads: how many step at once; all cores of this process if ``None``.
    """

    begins_with_tensors = False

    def __init__(
        self,
        model: mujoco.MjModel,
        *,
        frame_skip: int,
        arrays: Mapping[str, slice],
        threads: int | None = None,
    ) -> None:
        super().__init__(model, frame_skip=frame_skip, device="cpu", dtype=torch.float64)
        threads = threads or all_cores()
        self._pool = ThreadPoolExecutor(threads)
        self._data = [mujoco.MjData(model) for _ in range(threads)]
        self._arrays = dict(arrays)
        self.num_sensors = max((columns.stop for columns in arrays.values()), default=0)

    def step(self, motion: Motion, control: Tensor) -> Motion:
        """The motion after ``frame_skip`` physics steps."""
        model = self.model
        parts = (motion.qpos, motion.qvel, motion.warmstart, control.to(self.dtype))
        start = torch.cat(parts, -1).numpy()
        end = np.empty((len(start), model.nq + 2 * model.nv))
        sensors = np.empty((len(start), self.num_sensors))

        def run(data: mujoco.MjData, copies: range) -> None:
            for i in copies:
                mujoco.mj_setState(model, data, start[i], _START)
                mujoco.mj_step(model, data, self.frame_skip)
                mujoco.mj_rnePostConstraint(model, data)
                mujoco.mj_getState(model, data, end[i], _END)
                self._read(data, sensors[i])

        self._share(run, len(start))
        qpos, qvel, warmstart = torch.from_numpy(end).split((model.nq, model.nv, model.nv), -1)
        return Motion(qpos, qvel, warmstart, torch.from_numpy(sensors))

    def begin(self, qpos: Tensor, qvel: Tensor) -> Motion:
        """The motion of bodies that have not moved yet."""
        warmstart = np.empty((len(qpos), self.model.nv))
        sensors = np.empty((len(qpos), self.num_sensors))
        for i, (place, speed) in enumerate(zip(qpos.numpy(), qvel.numpy(), strict=True)):
            data = mujoco.MjData(self.model)
            data.qpos, data.qvel = place, speed
            mujoco.mj_forward(self.model, data)
            warmstart[i] = data.qacc_warmstart
            self._read(data, sensors[i])
        return Motion(qpos, qvel, torch.from_numpy(warmstart), torch.from_numpy(sensors))

    def _share(self, run: Callable[[mujoco.MjData, range], None], count: int) -> None:
        """Runs a loop over copies, every thread its share."""
        threads = len(self._data)
        shares = [range(first, count, threads) for first in range(threads)]
        for _ in self._pool.map(run, self._data, shares):
            pass

    def _read(self, data: mujoco.MjData, out: np.ndarray) -> None:
        for name, columns in self._arrays.items():
            out[columns] = getattr(data, name).ravel()
