"""Diversity measures on the paper's grid world, computed from their definitions (Table 1).

Action-based measures call pi1 and pi2, which both walk along the diagonal, as different as pi1
and pi3 or more so; state distances agree with the eye. State-occupancy measures cannot tell
whether pi4 or pi5 is closer to pi3; the earth mover's distance (EMD) can.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from scipy.special import rel_entr

from sipo_trl.envs import GridPolicy, GridWorld, paper_policies

Table = dict[tuple[str, str], dict[str, float]]


@dataclass(frozen=True)
class Walk:
    """A deterministic policy on the grid and the trajectory that it makes.

    Attributes:
        probabilities: action distribution in each cell [size, size, 2].
        states: cells in which the policy acts [T, 2]: the start first, the goal left out.
        actions: its actions there [T].
    """

    probabilities: NDArray[np.float64]
    states: NDArray[np.int64]
    actions: NDArray[np.int64]

    @classmethod
    def of(cls, policy: GridPolicy) -> "Walk":
        """Let a policy walk through the grid world of its size."""
        env = GridWorld(size=len(policy.actions))
        rollout = env.rollout(env.horizon, policy)
        states = rollout["diversity_state"].long().numpy()
        return cls(policy.probabilities.numpy(), states, rollout["action"].numpy())

    @property
    def interior(self) -> NDArray[np.int64]:
        """Visited cells [T - 1, 2] without the start and the goal, which all walks share."""
        return self.states[1:]

    @property
    def occupancy(self) -> NDArray[np.float64]:
        """Share of the time in each cell [size, size], over the interior of the walk."""
        visits = np.zeros(self.probabilities.shape[:2])
        np.add.at(visits, tuple(self.interior.T), 1.0)
        return visits / visits.sum()

    def acting_in(self, states: NDArray[np.int64]) -> NDArray[np.float64]:
        """Action distributions [n, 2] in some cells [n, 2]."""
        return self.probabilities[tuple(states.T)]

    def likelihood(self, other: "Walk") -> float:
        """Probability that this policy makes another's trajectory."""
        chances = self.acting_in(other.states)
        return float(np.take_along_axis(chances, other.actions[:, None], 1).prod())


Measure = Callable[[Walk, Walk], float]


def kl(p: Walk, q: Walk) -> float:
    """Mean Kullback-Leibler divergence of the actions, over the states that both visit."""
    ours, theirs = _actions_on_both(p, q)
    return float(rel_entr(ours, theirs).sum(-1).mean())


def jsd_1(p: Walk, q: Walk) -> float:
    """Jensen-Shannon divergence of the trajectories (TrajDi's with discount 1)."""
    return -sum(
        log((p.likelihood(own) + q.likelihood(own)) / (2 * own.likelihood(own))) / 2
        for own in (p, q)
    )


def jsd_0(p: Walk, q: Walk) -> float:
    """Mean Jensen-Shannon divergence of the actions in bits, over the states that both visit.

    It is 1 where deterministic policies disagree and 0 elsewhere, as is their actions' EMD.
    """
    ours, theirs = _actions_on_both(p, q)
    middle = (ours + theirs) / 2
    nats = (rel_entr(ours, middle) + rel_entr(theirs, middle)).sum(-1) / 2
    return float(nats.mean() / log(2))


def action_l2(p: Walk, q: Walk) -> float:
    """L2 norm over all cells; a cell in which the actions differ counts 1."""
    return sqrt(np.square(p.probabilities - q.probabilities).sum() / 2)


def state_l2(p: Walk, q: Walk) -> float:
    """L2 distance of the visited cells, compared step by step."""
    return float(np.linalg.norm(p.interior - q.interior))


def state_emd(p: Walk, q: Walk) -> float:
    """EMD of the visited cells with unit mass each, under the Euclidean distance.

    With equally many unit masses a best transport plan is an assignment, which is solved exactly.
    """
    cost = cdist(p.interior, q.interior)
    return float(cost[linear_sum_assignment(cost)].sum())


def state_occupancy(p: Walk, q: Walk) -> float:
    """Total variation between the state occupancies: 1 if the walks share no cell."""
    return float(np.abs(p.occupancy - q.occupancy).sum() / 2)


def diversity_table() -> Table:
    """The paper's Table 1: six measures for the pairs (pi1, pi2) and (pi1, pi3).

    Examples:
        >>> print(format_table(diversity_table()))
        pair      kl   jsd_1   jsd_0   action_l2  state_l2  state_emd
        pi1, pi2  inf  0.6931  0.5000  2.6458     2.8284    5.6569
        pi1, pi3  inf  0.6931  0.1250  1.0000     4.8990    11.3137
    """
    measures = (kl, jsd_1, jsd_0, action_l2, state_l2, state_emd)
    return _compare([("pi1", "pi2"), ("pi1", "pi3")], measures)


def occupancy_table() -> Table:
    """Why occupancies are not enough: the pairs (pi3, pi4) and (pi3, pi5), with the EMD beside.

    Examples:
        >>> print(format_table(occupancy_table()))
        pair      state_occupancy  state_emd
        pi3, pi4  1.0000           9.8995
        pi3, pi5  1.0000           22.6274
    """
    return _compare([("pi3", "pi4"), ("pi3", "pi5")], (state_occupancy, state_emd))


def format_table(table: Mapping[tuple[str, str], Mapping[str, float]]) -> str:
    """Lay a table out in aligned columns, one row per pair."""
    names = next(iter(table.values())).keys()
    lines = [["pair", *names]]
    lines += [[", ".join(pair), *(f"{row[n]:.4f}" for n in names)] for pair, row in table.items()]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def _compare(pairs: Sequence[tuple[str, str]], measures: Sequence[Measure]) -> Table:
    walks = {name: Walk.of(policy) for name, policy in paper_policies().items()}
    return {
        (p, q): {measure.__name__: measure(walks[p], walks[q]) for measure in measures}
        for p, q in pairs
    }


def _actions_on_both(p: Walk, q: Walk) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Both policies' action distributions [2T, 2] on all states of the two trajectories."""
    states = np.concatenate([p.states, q.states])
    return p.acting_in(states), q.acting_in(states)
