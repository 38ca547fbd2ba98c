"""Algorithms, each a short composition of the package's parts.

- :func:`run_itr`: iterative learning, SIPO's own form;
- :func:`run_pbt`: population-based training with the same parts, for comparison.
"""

from sipo_trl.algorithms.itr import run_itr
from sipo_trl.algorithms.pbt import run_pbt

__all__ = ["run_itr", "run_pbt"]
