"""Ablations that train on one mixed reward instead of one value head per reward."""

import torch
from tensordict import TensorDictBase
from torch import Tensor

from sipo_trl.objectives.lagrange import LagrangeMultipliers


def summed_reward(
    batch: TensorDictBase, multipliers: LagrangeMultipliers, scale: float
) -> TensorDictBase:
    """Folds intrinsic rewards into the task's: ``r + scale * sum_j lambda_j r_j``, for one head.

    GAE is linear, so the advantages are those of separate heads; what differs is that one head
    has to predict the sum, whose weights move with the multipliers.

    Args:
        batch: [*B, T], with ``reward`` and ``intrinsic_reward`` below "next".
        multipliers: the weights of the intrinsic rewards.
        scale: the paper's alpha.
    """
    following = batch["next"]
    rewards = torch.cat([following["reward"], following["intrinsic_reward"]], -1)
    return _with_reward(batch, multipliers.combine(rewards, scale))


def filtered_reward(
    batch: TensorDictBase, multipliers: LagrangeMultipliers, scale: float, distances: Tensor
) -> TensorDictBase:
    """Pays the task on episodes that are far enough from all others, distance on the rest.

    Args:
        batch: [*B, T], with ``reward`` and ``intrinsic_reward`` below "next".
        multipliers: their thresholds decide what is far enough.
        scale: the paper's alpha.
        distances: of each step's whole episode to each archived policy [*B, T, J].
    """
    following = batch["next"]
    passed = multipliers.satisfied(distances).all(-1, keepdim=True)
    distance = multipliers.sign * scale * following["intrinsic_reward"].sum(-1, keepdim=True)
    return _with_reward(batch, torch.where(passed, following["reward"], distance))


def _with_reward(batch: TensorDictBase, reward: Tensor) -> TensorDictBase:
    """The batch with this reward alone; the caller's batch stays as it is."""
    batch = batch.exclude(("next", "intrinsic_reward"))
    return batch.set(("next", "reward"), reward)
