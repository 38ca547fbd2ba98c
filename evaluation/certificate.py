"""Which policies of a population are really different, and how many strategies it holds.

Whether two policies differ is asked of episodes that neither was trained on. Their distance is the
energy coefficient of their states (Székely and Rizzo), ``1 - (W_i + W_j) / 2B``: B is the mean
distance between a state of one policy and a state of the other, W that between states of different
episodes of the same policy. It needs no bandwidth and no training, and has no unit: 0 if the
states have the same distribution, up to 1 if a policy's own states are as good as equal beside the
distance to the other's. Episodes, not states, are independent of each other, so that episodes are
what the bootstrap draws.

Two policies are distinct if their distance is surely more than chance and more than a trifle.
Chance is what two samples of one and the same policy's episodes have for a distance. What is a
trifle depends on the states: where they vary in many directions, most of any distance is what a
policy varies by itself, and even a plain difference is a small part of it. So the least that counts
is divided by the number of directions, ``tr(S)^2 / tr(S^2)`` with S the covariance of a policy's
states, which takes features that go together for one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evaluation.progress import Progress, silent

# States of an episode that are compared, evenly spaced: more change the second digit at most.
_STATES = 64


@dataclass(frozen=True)
class PairVerdict:
    """Whether two policies are distinct.

    Attributes:
        first: index of a policy.
        second: index of another.
        distance: their energy coefficient.
        low: lower end of its confidence interval.
        high: upper end.
        limit: what the whole interval has to surpass.
        distinct: whether it does.
    """

    first: int
    second: int
    distance: float
    low: float
    high: float
    limit: float
    distinct: bool

    @property
    def verdict(self) -> str:
        """In words."""
        return "distinct" if self.distinct else "not distinguishable"


@dataclass(frozen=True)
class Certificate:
    """What is known about the diversity of a population.

    Attributes:
        pairs: a verdict for each pair of policies.
        strategies: a largest set of policies that are all distinct from each other.
    """

    pairs: tuple[PairVerdict, ...]
    strategies: tuple[int, ...]


def certify(
    episodes: Sequence[Sequence[Tensor]],
    *,
    least: float = 0.1,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
    progress: Progress = silent,
) -> Certificate:
    """Compare every two policies of a population.

    Args:
        episodes: for each policy, the states [T, *F] of at least two episodes.
        least: the distance that two policies must surpass to be distinct where states vary in one
            direction; where they vary in several, as many times less. Below about 0.1 it is the
            same path with other noise: two straight paths at an angle of 15 degrees have it.
        confidence: probability with which an interval holds the true distance.
        resamples: bootstrap resamples, from which intervals are taken.
        seed: decides the resampling.
        progress: is told how many policies are done, and of how many.

    Examples:
        >>> near = [torch.randn(20, 2) for _ in range(8)]
        >>> far = [torch.randn(20, 2) + 5 for _ in range(8)]
        >>> certificate = certify([near[:4], far, near[4:]])
        >>> [(pair.first, pair.second, pair.verdict) for pair in certificate.pairs]
        [(0, 1, 'distinct'), (0, 2, 'not distinguishable'), (1, 2, 'distinct')]
        >>> len(certificate.strategies)
        2
    """
    for index, policy in enumerate(episodes):
        if len(policy) < 2:
            raise ValueError(
                f"Policy {index + 1} has {len(policy)} episodes: a certificate needs at least two "
                "of each policy."
            )
    numbers = [len(policy) for policy in episodes]
    states = _comparable(episodes).split(numbers)
    costs = _episode_costs(states, progress)
    generator = np.random.default_rng(seed)
    weights = [_draw(generator, number, resamples) for number in numbers]
    within = [_within(costs[i, i], weights[i], weights[i]) for i in range(len(numbers))]
    tail = (1 - confidence) / 2
    chance = [
        _chance(costs[i, i], weights[i], _draw(generator, number, resamples), 1 - tail)
        for i, number in enumerate(numbers)
    ]
    directions = [_directions(policy.flatten(0, 1)) for policy in states]
    pairs = []
    for i, j in combinations(range(len(numbers)), 2):
        between = np.einsum("re,ef,rf->r", weights[i], costs[i, j], weights[j], optimize=True)
        between /= numbers[i] * numbers[j]
        distances = _coefficient(between, within[i], within[j])
        low, high = np.quantile(distances[1:], [tail, 1 - tail])
        # The estimate itself may be outside, because resamples hold less variety.
        distance = float(distances[0])
        low, high = min(distance, float(low)), max(distance, float(high))
        limit = max(2 * least / (directions[i] + directions[j]), chance[i], chance[j])
        pairs.append(PairVerdict(i, j, distance, low, high, limit, low > limit))
    return Certificate(tuple(pairs), largest_distinct_set(len(numbers), pairs))


def largest_distinct_set(number: int, pairs: Sequence[PairVerdict]) -> tuple[int, ...]:
    """A largest set of policies of which every two are distinct.

    Args:
        number: how many policies there are.
        pairs: the verdicts on them.

    Examples:
        >>> apart, same = (0.4, 0.3, 0.5, 0.1, True), (0.0, 0.0, 0.0, 0.1, False)
        >>> pairs = [PairVerdict(0, 1, *apart), PairVerdict(0, 2, *same)]
        >>> largest_distinct_set(3, pairs)
        (0, 1)
    """
    others: dict[int, set[int]] = {index: set() for index in range(number)}
    for pair in pairs:
        if pair.distinct:
            others[pair.first].add(pair.second)
            others[pair.second].add(pair.first)

    def grow(chosen: tuple[int, ...], left: Sequence[int]) -> tuple[int, ...]:
        best = chosen
        for index, policy in enumerate(left):
            if len(chosen) + len(left) - index <= len(best):
                break
            later = [other for other in left[index + 1 :] if other in others[policy]]
            best = max(best, grow((*chosen, policy), later), key=len)
        return best

    return grow((), range(number))


def _comparable(episodes: Sequence[Sequence[Tensor]]) -> Tensor:
    """Evenly spaced states of all episodes [episodes, _STATES, F].

    They keep the environment's scale: by their own spread, a feature in which two policies hardly
    differ, and all others not at all, would weigh as much as any.
    """
    return torch.stack(
        [
            episode.flatten(1)[torch.arange(_STATES) * len(episode) // _STATES].double()
            for policy in episodes
            for episode in policy
        ]
    )


def _episode_costs(
    policies: Sequence[Tensor], progress: Progress
) -> dict[tuple[int, int], NDArray[np.float64]]:
    """Mean distances between the states of two episodes [E_i, E_j], for each pair of policies."""
    costs = {}
    for i, first in enumerate(policies):
        progress(i, len(policies))
        for j in range(i, len(policies)):
            costs[i, j] = torch.cat(list(_mean_distances(first, policies[j]))).numpy()
    progress(len(policies), len(policies))
    return costs


def _mean_distances(first: Tensor, second: Tensor) -> Iterator[Tensor]:
    """Mean distances of states, one row [1, E_j] for each of the first policy's episodes."""
    others = second.flatten(0, 1)
    for episode in first:
        yield torch.cdist(episode, others).mean(0).view(1, len(second), -1).mean(2)


def _draw(generator: np.random.Generator, number: int, resamples: int) -> NDArray[np.float64]:
    """How often each episode is drawn [1 + resamples, E]; the first row is the sample itself."""
    drawn = generator.multinomial(number, np.full(number, 1 / number), size=resamples)
    return np.concatenate([np.ones((1, number)), drawn])


def _directions(states: Tensor) -> float:
    """In how many directions states [n, F] vary; one, if they do not vary at all."""
    centred = states - states.mean(0)
    products = centred.T @ centred if len(centred) > centred.shape[1] else centred @ centred.T
    squares = float(products.square().sum())
    return float(products.trace()) ** 2 / squares if squares > 0 else 1.0


def _chance(
    costs: NDArray[np.float64],
    weights: NDArray[np.float64],
    others: NDArray[np.float64],
    level: float,
) -> float:
    """The distance that two samples of the same policy's episodes hardly ever surpass."""
    between, *within = (
        _within(costs, *samples)
        for samples in ((weights, others), (weights, weights), (others, others))
    )
    return float(np.quantile(_coefficient(between, *within)[1:], level))


def _within(
    costs: NDArray[np.float64], weights: NDArray[np.float64], others: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Mean distance between different episodes of two samples of a policy [1 + resamples]."""
    apart = 1 - np.eye(len(costs))
    total = np.einsum("re,ef,rf->r", weights, costs * apart, others, optimize=True)
    pairs = np.einsum("re,ef,rf->r", weights, apart, others, optimize=True)
    # A resample of one episode only says nothing: it repeats the estimate of the sample.
    return np.divide(total, pairs, out=np.full_like(total, total[0] / pairs[0]), where=pairs > 0)


def _coefficient(
    between: NDArray[np.float64], first: NDArray[np.float64], second: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The energy coefficient, 0 where nothing differs at all."""
    excess = 1 - (first + second) / (2 * np.where(between > 0, between, 1.0))
    return np.where(between > 0, excess, 0.0)
