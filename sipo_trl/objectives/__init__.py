"""What turns rewards into gradients: advantages per head, the PPO loss, the multipliers.

- :class:`MultiHeadGAE`: generalised advantages for any number of value heads;
- :class:`MultiHeadClipPPOLoss`: clipped PPO with a multi-head critic and a combined advantage;
- :class:`LagrangeMultipliers`: one multiplier per earlier policy, the dual step, the combination;
- :class:`EpisodeReturns`, :func:`finished_mean`, :func:`whole_episode`: returns of episodes that
  span batches, which the dual step compares with its thresholds;
- :func:`summed_reward`, :func:`filtered_reward`: ablations with one reward instead of heads;
- :class:`HeadValueNorm`: value normalisation per head that ignores dead agents.
"""

from sipo_trl.objectives.episode_returns import EpisodeReturns, finished_mean, whole_episode
from sipo_trl.objectives.gae import MultiHeadGAE
from sipo_trl.objectives.lagrange import LagrangeMultipliers
from sipo_trl.objectives.mixing import filtered_reward, summed_reward
from sipo_trl.objectives.ppo import MultiHeadClipPPOLoss
from sipo_trl.objectives.value_norm import HeadValueNorm

__all__ = [
    "EpisodeReturns",
    "HeadValueNorm",
    "LagrangeMultipliers",
    "MultiHeadClipPPOLoss",
    "MultiHeadGAE",
    "filtered_reward",
    "finished_mean",
    "summed_reward",
    "whole_episode",
]
