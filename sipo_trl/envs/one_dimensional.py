"""Population-based against iterative search where both can be solved exactly (Sec. 4.2, Thm. 1).

A policy is a point on a line, the distance of two is ``|x - y|``, and each candidate point has a
reward. With the threshold ``delta`` the iterative solution can be worse than the best population;
with ``delta / 2`` it never is.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Points that are `delta` apart but for rounding count as `delta` apart, in units of the largest
# coordinate. It is absolute, not relative to `delta`, because Theorem 1 then survives rounding:
# two halves of `delta` are granted twice the slack of one whole.
ROUNDING = 1e-9


class Solution(NamedTuple):
    """Chosen points and what they earn."""

    points: Floats
    """Chosen points [m], in the order in which they were found or, from PBT, in ascending order."""
    rewards: Floats
    """Their rewards [m]."""

    @property
    def total(self) -> float:
        """Sum of the rewards."""
        return float(self.rewards.sum())


def solve_pbt(
    points: Sequence[float] | Floats, rewards: Sequence[float] | Floats, m: int, delta: float
) -> Solution:
    """Find the ``m`` points of greatest total reward that lie pairwise at least ``delta`` apart.

    Exact, by dynamic programming over the sorted points.

    Args:
        points: candidates [n], in any order.
        rewards: their rewards [n].
        m: number of points to choose.
        delta: least distance between any two of them.

    Raises:
        ValueError: if no ``m`` points are far enough apart.

    Examples:
        >>> solve_pbt([0.0, 1.0, 2.0, 4.0], [1.0, 1.1, 1.0, 0.0], m=2, delta=2.0).points
        array([0., 2.])
    """
    x, r, slack = _check(points, rewards, m, delta)
    order = np.argsort(x, kind="stable")
    x, r = x[order], r[order]
    # Of the sorted points, the first `before[i]` lie far enough to the left of point i.
    before = np.searchsorted(x, x - delta + slack, side="right")
    # best[k, i]: greatest total of k of the first i points; -inf where k do not fit.
    best = np.full((m + 1, len(x) + 1), -np.inf)
    best[0] = 0.0
    for k in range(1, m + 1):
        best[k, 1:] = np.maximum.accumulate(best[k - 1, before] + r)
    if best[m, -1] == -np.inf:
        raise ValueError(
            f"delta is {delta}: no {m} of the {len(x)} points are that far apart; "
            "lower delta or m, or give more points."
        )
    chosen = []
    end = len(x)
    for k in range(m, 0, -1):
        last = int(np.argmax(best[k, : end + 1])) - 1
        chosen.append(last)
        end = before[last]
    chosen.reverse()
    return Solution(x[chosen], r[chosen])


def solve_itr(
    points: Sequence[float] | Floats, rewards: Sequence[float] | Floats, m: int, delta: float
) -> Solution:
    """Choose ``m`` times the best point that lies at least ``delta`` from all earlier ones.

    Args:
        points: candidates [n], in any order; of equally good ones the first is taken.
        rewards: their rewards [n].
        m: number of points to choose.
        delta: least distance to each earlier point.

    Raises:
        ValueError: if the earlier points leave none that is far enough away.

    Examples:
        >>> line, rewards = [0.0, 1.0, 2.0, 4.0], [1.0, 1.1, 1.0, 0.0]
        >>> solve_itr(line, rewards, m=2, delta=2.0).points  # the best point blocks both others
        array([1., 4.])
        >>> solve_itr(line, rewards, m=2, delta=1.0).points
        array([1., 0.])
    """
    x, r, slack = _check(points, rewards, m, delta)
    allowed = r.copy()
    chosen = []
    for i in range(m):
        best = int(np.argmax(allowed))
        if allowed[best] == -np.inf:
            raise ValueError(
                f"delta is {delta}: after {i} of {m} points none is far enough from all of them; "
                "lower delta or m, or give more points."
            )
        chosen.append(best)
        allowed[np.abs(x - x[best]) < delta - slack] = -np.inf
    return Solution(x[chosen], r[chosen])


def _check(
    points: Sequence[float] | Floats, rewards: Sequence[float] | Floats, m: int, delta: float
) -> tuple[Floats, Floats, float]:
    """Points and rewards as arrays, and the rounding that distances are granted."""
    x, r = np.asarray(points, dtype=np.float64), np.asarray(rewards, dtype=np.float64)
    if x.ndim != 1 or x.shape != r.shape or not len(x):
        raise ValueError(
            f"points and rewards have shapes {x.shape} and {r.shape}: give one reward per point."
        )
    if not (np.isfinite(x).all() and np.isfinite(r).all()):
        raise ValueError("points and rewards must be finite: leave forbidden points out instead.")
    if m < 1:
        raise ValueError(f"m is {m}: choose at least 1 point.")
    slack = ROUNDING * float(np.abs(x).max())
    if not delta > 2 * slack:
        raise ValueError(f"delta is {delta}: give a positive distance, above the points' rounding.")
    return x, r, slack
