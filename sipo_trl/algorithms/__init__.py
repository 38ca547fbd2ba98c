"""Algorithms, each a short composition of the package's parts.

- :func:`run_itr`: iterative learning, SIPO's own form.
"""

from sipo_trl.algorithms.itr import run_itr

__all__ = ["run_itr"]
