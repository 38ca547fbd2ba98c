"""Transforms that add state distances to any TorchRL pipeline.

- :class:`StateDistanceReward`: one intrinsic reward per archived policy.
"""

from sipo_trl.transforms.state_distance import StateDistanceReward

__all__ = ["StateDistanceReward"]
