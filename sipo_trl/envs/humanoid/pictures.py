"""Pictures of a humanoid from its pose.

To be imported from here, so that environment workers need not load OpenGL.
"""

import os
from functools import cache

import torch
from torch import Tensor

from sipo_trl.envs.humanoid.model import humanoid_model
from sipo_trl.envs.humanoid.render import BodyRenderer, draw_bodies
from sipo_trl.envs.humanoid.visual import PLACE

SIZE = 84


class HumanoidPictures:
    """Draws 84 x 84 pictures of stacked poses.

    Camera and floor go with the body: a picture depends on the pose alone. Drawing takes about
    1.3 ms of a CPU per picture. Poses that occur several times are drawn once.

    Examples:
        >>> from sipo_trl.envs import HumanoidVisualEnv
        >>> env = HumanoidVisualEnv(batch_size=[2], seed=0)
        >>> poses = env.rollout(4)["diversity_state"]  # [2, 4, 26]
        >>> HumanoidPictures()(poses.flatten(1)).shape  # 4 frames of 3 colours
        torch.Size([2, 12, 84, 84])
    """

    def __init__(self) -> None:
        self._renderer = _renderer()

    def __call__(self, states: Tensor) -> Tensor:
        """Pictures [n, 3 K, 84, 84], uint8, of K stacked poses each [n, 26 K]."""
        size = self._renderer.model.nq - PLACE
        poses, index = torch.unique(states.cpu().reshape(-1, size), dim=0, return_inverse=True)
        qpos = torch.nn.functional.pad(poses, (PLACE, 0))
        pictures = draw_bodies(self._renderer, qpos)[index]
        return pictures.view(len(states), -1, SIZE, SIZE).to(states.device)


@cache
def _renderer() -> BodyRenderer:
    """One for all, because windows without a screen are few."""
    # Threads of Mesa, which draws where there is no GPU, would wait more than draw: in a picture
    # as small as this they take half as much time again.
    os.environ.setdefault("LP_NUM_THREADS", "0")
    model = humanoid_model()
    # MuJoCo draws an endless floor as 40 000 tiles, which takes five times as long as the rest.
    model.geom("floor").size[:] = 10.0
    return BodyRenderer(model, width=SIZE, height=SIZE, plain=True, distance=2.5)
