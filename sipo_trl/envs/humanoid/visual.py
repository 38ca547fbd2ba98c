"""A humanoid whose diversity is in how it looks."""

import os
from functools import cache

import torch
from tensordict import TensorDictBase
from torch import Tensor
from torchrl.data import Unbounded

from sipo_trl.envs.humanoid.env import HumanoidEnv
from sipo_trl.envs.humanoid.model import humanoid_model
from sipo_trl.envs.humanoid.render import BodyRenderer, draw_bodies

SIZE = 84
PLACE = 2  # positions begin with where on the floor the body is, which is not how it looks


class HumanoidVisualEnv(HumanoidEnv):
    """The humanoid with its pose as ``diversity_state``: all that a picture of it is made of.

    A policy sees what it sees in :class:`~sipo_trl.envs.HumanoidEnv`. The ``diversity_state``
    [N, 26] is the torso's height and orientation (a quaternion) and the angles of the joints;
    :class:`HumanoidPictures` turns it into pictures, of as many states as one can afford. To draw
    every step would cost many times what it takes to simulate it, and a batch of stacked pictures
    hundreds of megabytes.

    The options are those of :class:`~sipo_trl.envs.HumanoidEnv`.

    Examples:
        >>> env = HumanoidVisualEnv(batch_size=[4], seed=0)
        >>> env.reset()["diversity_state"].shape
        torch.Size([4, 26])
    """

    def _make_specs(self) -> None:
        super()._make_specs()
        shape = (*self.batch_size, self.task.model.nq - PLACE)
        observations = self.observation_spec.clone()
        observations["diversity_state"] = Unbounded(shape, device=self.device)
        self.observation_spec = observations

    def _report(self, **more: Tensor) -> TensorDictBase:
        pose = self.qpos[:, PLACE:].to(torch.float32, copy=True)
        return super()._report(**more).set("diversity_state", pose)


class HumanoidPictures:
    """Draws 84 x 84 pictures of stacked poses.

    Camera and floor go with the body: a picture depends on the pose alone. Drawing takes about
    1.3 ms of a CPU per picture. Poses that occur several times are drawn once.

    Examples:
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
