"""SIPO as TorchRL components: several good and truly different policies instead of one.

The parts, in the order in which data flows through them:

- :mod:`sipo_trl.envs`: batched environments that expose a ``diversity_state``;
- :mod:`sipo_trl.archive`: what finished policies leave behind;
- :mod:`sipo_trl.measures`: state distances to every archived policy at once;
- :mod:`sipo_trl.transforms`: those distances as intrinsic rewards in any TorchRL pipeline;
- :mod:`sipo_trl.objectives`: multi-head GAE and PPO, and the Lagrange multipliers;
- :mod:`sipo_trl.models`: actors and multi-head critics built from environment specs;
- :mod:`sipo_trl.training` and :mod:`sipo_trl.algorithms`: the loop and its compositions.
"""

__version__ = "0.1.0"
