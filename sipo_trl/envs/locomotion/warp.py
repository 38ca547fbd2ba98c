"""MuJoCo on a GPU."""

import importlib
from contextlib import AbstractContextManager
from copy import copy
from types import ModuleType

import mujoco
import torch
from torch import Tensor

from sipo_trl.envs.locomotion.simulator import Motion, Simulator

# Bounds per copy: twenty capsules that lie flat have 40 contacts, which are 160 constraints.
MAX_CONTACTS = 64
MAX_CONSTRAINTS = 256


class WarpSimulator(Simulator):
    """Steps all copies at once with MuJoCo Warp, in single precision.

    On a GPU the steps are recorded once as a CUDA graph and replayed. On the CPU, where it is of
    use for tests only, it is twenty times slower than
    :class:`~sipo_trl.envs.locomotion.RolloutSimulator`. The first use compiles for a minute.

    Args:
        model: what is simulated.

    Keyword Args:
        frame_skip: physics steps per call.
        num_envs: number of copies, which cannot change.
        device: where the motions live.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        *,
        frame_skip: int,
        num_envs: int,
        device: torch.device | str | None = None,
    ) -> None:
        device = torch.device(device or "cpu")
        super().__init__(model, frame_skip=frame_skip, device=device, dtype=torch.float32)
        self._warp, self._engine = _import("warp"), _import("mujoco_warp")
        if device.type != "cpu" and not torch.cuda.is_available():
            raise RuntimeError(
                f"device is {device}, but torch finds no GPU: give device='cpu', where "
                "backend='mujoco' is the fast one."
            )
        with self._on_device():
            # Warp never starts a body anew by itself, and does not know the flag that says so.
            plain = copy(model)
            plain.opt.disableflags &= ~int(mujoco.mjtDisableBit.mjDSBL_AUTORESET)
            self._model = self._engine.put_model(plain)
            self._data = self._engine.make_data(
                model, nworld=num_envs, nconmax=MAX_CONTACTS, njmax=MAX_CONSTRAINTS
            )
            # Tensors that share the simulation's memory.
            view = {"qpos", "qvel", "qacc_warmstart", "ctrl", "sensordata"}
            self._view = {name: self._warp.to_torch(getattr(self._data, name)) for name in view}
            self._graph = None
            if device.type == "cuda":
                with self._warp.ScopedCapture() as capture:
                    self._run()
                self._graph = capture.graph

    def step(self, motion: Motion, control: Tensor) -> Motion:
        """The motion after ``frame_skip`` physics steps."""
        view = self._view
        with self._on_device():
            view["qpos"].copy_(motion.qpos)
            view["qvel"].copy_(motion.qvel)
            view["qacc_warmstart"].copy_(motion.warmstart)
            view["ctrl"].copy_(control)
            if self._graph is None:
                self._run()
            else:
                self._warp.capture_launch(self._graph)
            names = ("qpos", "qvel", "qacc_warmstart", "sensordata")
            return Motion(*(view[name].clone() for name in names))

    def _run(self) -> None:
        for _ in range(self.frame_skip):
            self._engine.step(self._model, self._data)

    def _on_device(self) -> AbstractContextManager[object]:
        """Where Warp works: on a GPU in torch's own stream, so that neither waits for the other."""
        if torch.device(self.device or "cpu").type == "cpu":
            return self._warp.ScopedDevice("cpu")
        stream = torch.cuda.current_stream(self.device)
        return self._warp.ScopedStream(self._warp.stream_from_torch(stream))


def _import(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(
            f"The backend mujoco_warp needs the package {name}: pip install 'sipo-trl[warp]', or "
            "choose backend='mujoco'."
        ) from error
