"""Pictures of bodies, drawn off-screen.

To be imported from here, so that environment workers need not load OpenGL.
"""

import os
import subprocess
import sys
from copy import copy
from functools import cache
from importlib import import_module
from pathlib import Path

import mujoco
import numpy as np
import torch
from PIL import Image
from tensordict import TensorDictBase
from tensordict.nn import TensorDictModuleBase
from torch import Tensor
from torchrl.envs import EnvBase, TransformedEnv
from torchrl.envs.utils import ExplorationType, set_exploration_type

from sipo_trl.envs.locomotion import LocomotionEnv

PLATFORMS = ("egl", "osmesa")


class BodyRenderer:
    """Draws a body from the side, wherever it goes, without a screen.

    Args:
        model: the body and its world.

    Keyword Args:
        width: of the pictures, in pixels.
        height: of the pictures, in pixels.
        plain: leave out shadows, sky and fine shapes, which cost twenty times as much as all else
            in a small picture.
        distance: of the camera, in metres.

    Examples:
        >>> from sipo_trl.envs.humanoid import humanoid_model
        >>> model = humanoid_model()
        >>> renderer = BodyRenderer(model, width=84, height=84, plain=True)
        >>> renderer.draw(torch.tensor(model.qpos0)).shape
        (84, 84, 3)
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        *,
        width: int,
        height: int,
        plain: bool = False,
        distance: float = 4.0,
    ) -> None:
        self.model = copy(model)
        view = self.model.vis
        view.global_.offwidth, view.global_.offheight = width, height
        view.quality.shadowsize = 1024  # four times as fast as the default without a GPU
        if plain:
            view.quality.offsamples = view.quality.shadowsize = 0
            view.quality.numslices, view.quality.numstacks = 8, 6
        platform = import_module(f"mujoco.{offscreen_platform()}")
        self._window = platform.GLContext(width, height)
        self._window.make_current()
        self._context = mujoco.MjrContext(self.model, mujoco.mjtFontScale.mjFONTSCALE_100)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._context)
        self._scene = mujoco.MjvScene(self.model, maxgeom=200)
        for flag in ("REFLECTION", "SHADOW", "SKYBOX", "HAZE") if plain else ("REFLECTION",):
            self._scene.flags[getattr(mujoco.mjtRndFlag, f"mjRND_{flag}")] = False
        self._data = mujoco.MjData(self.model)
        self._options = mujoco.MjvOption()
        self._camera = _side_camera(distance)
        self._viewport = mujoco.MjrRect(0, 0, width, height)

    def draw(self, qpos: Tensor) -> np.ndarray:
        """One picture [H, W, 3], uint8, of a body at ``qpos`` [nq]."""
        self._data.qpos = qpos.cpu().numpy()
        mujoco.mj_kinematics(self.model, self._data)
        mujoco.mj_comPos(self.model, self._data)
        mujoco.mj_camlight(self.model, self._data)
        self._window.make_current()
        # First, or else the headlight would stand where the camera was in the last picture.
        mujoco.mjv_updateCamera(self.model, self._data, self._camera, self._scene)
        mujoco.mjv_updateScene(
            self.model,
            self._data,
            self._options,
            None,
            self._camera,
            mujoco.mjtCatBit.mjCAT_ALL,
            self._scene,
        )
        mujoco.mjr_render(self._viewport, self._scene, self._context)
        picture = np.empty((self._viewport.height, self._viewport.width, 3), dtype=np.uint8)
        mujoco.mjr_readPixels(picture, None, self._viewport, self._context)
        return picture[::-1]  # OpenGL counts from below

    def close(self) -> None:
        """Frees the off-screen window."""
        # What is freed is looked up in the current window, which may be another renderer's.
        self._window.make_current()
        self._context.free()
        self._window.free()


def draw_bodies(renderer: BodyRenderer, qpos: Tensor) -> Tensor:
    """Draw several bodies, one picture each, as images for networks.

    Args:
        renderer: what draws; a ``plain`` one of 84 x 84 pixels takes about 5 ms per picture.
        qpos: positions of the bodies [N, nq].

    Returns:
        Pictures [N, 3, H, W], uint8.
    """
    pictures = np.stack([renderer.draw(place) for place in qpos])
    return torch.from_numpy(pictures).movedim(-1, 1).contiguous()


@torch.no_grad()
def film(
    env: EnvBase,
    policy: TensorDictModuleBase,
    path: Path | str,
    *,
    width: int = 320,
    height: int = 240,
    steps: int = 300,
    every: int = 2,
) -> int:
    """Play an episode with a policy's most likely actions and keep it as an animated picture.

    Args:
        env: one copy, ``batch_size=[1]``, of an environment in which bodies move; may be
            transformed.
        policy: what acts, for example ``Archive.open(path)[0].load_policy()``.
        path: where the picture goes, as ``.webp``.
        width: in pixels.
        height: in pixels.
        steps: at most so many steps are shown.
        every: how many steps pass between two pictures; it is played at the speed of life.

    Returns:
        The number of steps that are shown.
    """
    base = env.base_env if isinstance(env, TransformedEnv) else env
    if not isinstance(base, LocomotionEnv) or base.batch_size != (1,):
        raise ValueError(
            f"env is {type(base).__name__} of batch size {list(base.batch_size)}: give one copy, "
            "[1], of a LocomotionEnv."
        )
    renderer = BodyRenderer(base.task.model, width=width, height=height)
    places: list[Tensor] = []

    def watched(data: TensorDictBase) -> TensorDictBase:
        places.append(base.qpos[0])
        return policy(data)

    with set_exploration_type(ExplorationType.DETERMINISTIC):
        env.rollout(steps, watched)
    seconds = every * base.task.frame_skip * base.task.model.opt.timestep
    pictures = [Image.fromarray(renderer.draw(place)) for place in places[::every]]
    renderer.close()
    pictures[0].save(
        path, save_all=True, append_images=pictures[1:], duration=round(1000 * seconds), loop=0
    )
    return len(places)


@cache
def offscreen_platform() -> str:
    """The library that draws without a screen here: ``"egl"`` or ``"osmesa"``.

    ``MUJOCO_GL`` decides if it names one of them. Each is tried in a process of its own, because
    OpenGL can be set up but once in a process.
    """
    chosen = os.environ.get("MUJOCO_GL", "").lower()
    for name in (chosen,) if chosen in PLATFORMS else PLATFORMS:
        trial = f"from mujoco.{name} import GLContext; GLContext(8, 8).make_current()"
        environment = {**os.environ, "PYOPENGL_PLATFORM": name, "MUJOCO_GL": name}
        if not subprocess.run(
            [sys.executable, "-c", trial], env=environment, capture_output=True, check=False
        ).returncode:
            return name
    raise RuntimeError(
        "Nothing here can draw without a screen: install EGL or OSMesa (on Debian: apt-get install "
        "libegl1 libgl1, or libosmesa6)."
    )


def _side_camera(distance: float) -> mujoco.MjvCamera:
    camera = mujoco.MjvCamera()
    camera.type = mujoco.mjtCamera.mjCAMERA_TRACKING
    camera.trackbodyid = 1
    camera.distance, camera.azimuth, camera.elevation = distance, 110.0, -12.0
    return camera
