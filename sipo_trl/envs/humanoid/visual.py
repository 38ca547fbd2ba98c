"""A humanoid whose diversity is in how it looks."""

from collections.abc import Mapping

import torch
from tensordict import TensorDictBase
from torch import Tensor

from sipo_trl.envs.humanoid.env import HumanoidEnv

PLACE = 2  # positions begin with where on the floor the body is, which is not how it looks


class HumanoidVisualEnv(HumanoidEnv):
    """The humanoid with its pose as ``diversity_state``: all that a picture of it is made of.

    A policy sees what it sees in :class:`~sipo_trl.envs.HumanoidEnv`. The ``diversity_state``
    [N, 26] is the torso's height and orientation (a quaternion) and the angles of the joints.
    :class:`~sipo_trl.envs.humanoid.pictures.HumanoidPictures` draws it, for as many states as one
    can afford: to draw every step would cost many times what it takes to simulate it, and a batch
    of stacked pictures would take hundreds of megabytes.

    The options are those of :class:`~sipo_trl.envs.HumanoidEnv`.

    Examples:
        >>> env = HumanoidVisualEnv(batch_size=[4], seed=0)
        >>> env.reset()["diversity_state"].shape
        torch.Size([4, 26])
    """

    _reported = (*HumanoidEnv._reported, "qpos")

    @property
    def _diversity_size(self) -> int:
        return self.task.model.nq - PLACE

    def _report(self, moments: Mapping[str, Tensor], **more: Tensor) -> TensorDictBase:
        pose = moments["qpos"][..., PLACE:].to(torch.float32, copy=True)
        return super()._report(moments, **more).set("diversity_state", pose)
