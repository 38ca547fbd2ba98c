"""What turns rewards into gradients: advantages per head, the PPO loss, the multipliers.

- :class:`MultiHeadGAE`: generalised advantages for any number of value heads;
- :class:`MultiHeadClipPPOLoss`: clipped PPO with a multi-head critic and a combined advantage;
- :class:`LagrangeMultipliers`: one multiplier per earlier policy, the dual step, the combination;
- :class:`EpisodeReturns`: the returns of finished episodes, which the dual step compares;
- :class:`HeadValueNorm`: value normalisation per head that ignores dead agents.
"""

from sipo_trl.objectives.episode_returns import EpisodeReturns
from sipo_trl.objectives.gae import MultiHeadGAE
from sipo_trl.objectives.lagrange import LagrangeMultipliers
from sipo_trl.objectives.ppo import MultiHeadClipPPOLoss
from sipo_trl.objectives.value_norm import HeadValueNorm

__all__ = [
    "EpisodeReturns",
    "HeadValueNorm",
    "LagrangeMultipliers",
    "MultiHeadClipPPOLoss",
    "MultiHeadGAE",
]
