from itertools import combinations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from evaluation.certificate import PairVerdict, certify, largest_distinct_set


def episodes(shift, number=8, steps=12):
    return [torch.randn(steps, 2) + shift for _ in range(number)]


def mean_distance(first, second, *, same):
    """Straight from the definition, over all pairs of (different) episodes."""
    pairs = [
        cdist(a.double(), b.double()).mean()
        for i, a in enumerate(first)
        for j, b in enumerate(second)
        if not (same and i == j)
    ]
    return float(np.mean(pairs))


def test_the_distance_is_the_energy_coefficient():
    # As long as what is compared of them, so that no state is left out or counted twice.
    first, second = episodes(0.0, steps=64, number=3), episodes(1.0, steps=64, number=4)
    (pair,) = certify([first, second]).pairs
    within = mean_distance(first, first, same=True) + mean_distance(second, second, same=True)
    expected = 1 - within / (2 * mean_distance(first, second, same=False))
    assert pair.distance == pytest.approx(expected, rel=1e-6)
    assert pair.low <= pair.distance <= pair.high


def test_points_far_apart_have_distance_one():
    still = [torch.zeros(3, 2)] * 4
    (pair,) = certify([still, [torch.ones(5, 2)] * 4]).pairs
    assert (pair.distance, pair.low, pair.high) == (1.0, 1.0, 1.0)
    (pair,) = certify([still, still]).pairs
    assert (pair.distance, pair.distinct) == (0.0, False)


def test_equal_policies_are_rarely_taken_for_distinct():
    verdicts = [
        certify([episodes(0.0), episodes(0.0)], least=0.0, resamples=300).pairs[0].distinct
        for _ in range(40)
    ]
    assert sum(verdicts) <= 6  # 2.5 % of 40 is 1; a test that always said so would give 40


def test_intervals_hold_the_true_distance_about_as_often_as_they_say():
    many = certify([episodes(0.0, number=150), episodes(1.0, number=150)], resamples=10)
    truth = many.pairs[0].distance
    found = [certify([episodes(0.0), episodes(1.0)], resamples=300).pairs[0] for _ in range(40)]
    assert sum(pair.low <= truth <= pair.high for pair in found) >= 32


def test_more_is_asked_less_is_distinct():
    population = [episodes(0.0), episodes(1.0)]
    (pair,) = certify(population, least=0.0).pairs
    assert pair.distinct
    (same,) = certify(population, least=1.0).pairs
    assert not same.distinct
    assert same.limit > pair.low > pair.limit


def test_a_straight_path_in_another_direction_is_distinct():
    def path(angle):
        direction = torch.tensor([np.cos(np.radians(angle)), np.sin(np.radians(angle))]).float()
        return [torch.arange(1, 10).unsqueeze(1) * direction] * 3

    verdicts = [certify([path(0), path(angle)]).pairs[0].distinct for angle in (5, 10, 30, 90)]
    assert verdicts == [False, False, True, True]


def wanderers(shift, *, number=8, features=40, steps=30):
    """Many features, each of which wanders by itself; the first is shifted by the policy."""
    walks = torch.randn(number, steps, features).cumsum(1) / steps**0.5
    walks += 0.3 * torch.randn(number, 1, features)
    walks[..., 0] += shift
    return list(walks)


def test_one_of_many_features_is_enough_if_it_differs_plainly():
    (pair,) = certify([wanderers(0.0, number=16), wanderers(2.5, number=16)], resamples=300).pairs
    assert pair.distance < 0.1  # diluted by the others
    assert pair.distinct


def test_the_limit_counts_directions_not_features():
    states = [torch.randn(64, 10) for _ in range(60)]
    other = [torch.randn(64, 10) + 5 for _ in range(60)]
    (pair,) = certify([states, other], resamples=100).pairs
    assert pair.limit == pytest.approx(0.1 / 10, rel=0.05)
    repeated = [[torch.cat([each, each], 1) for each in some] for some in (states, other)]
    assert certify(repeated, resamples=100).pairs[0].limit == pytest.approx(pair.limit, rel=1e-6)


@pytest.mark.parametrize("number", [2, 3, 6, 16])
def test_halves_of_one_policy_are_rarely_taken_for_distinct(number):
    torch.manual_seed(number)
    found = [
        certify([wanderers(0.0, number=number), wanderers(0.0, number=number)], resamples=100)
        for _ in range(15)
    ]
    assert sum(certificate.pairs[0].distinct for certificate in found) <= 2


@pytest.mark.parametrize(("number", "shift"), [(3, 6.0), (6, 4.0), (24, 2.0)])
def test_a_plain_difference_needs_few_episodes(number, shift):
    torch.manual_seed(number)
    found = [
        certify([wanderers(0.0, number=number), wanderers(shift, number=number)], resamples=100)
        for _ in range(10)
    ]
    assert sum(certificate.pairs[0].distinct for certificate in found) >= 9


@settings(max_examples=10, deadline=None)
@given(st.lists(st.sampled_from([0.0, 3.0, 6.0]), min_size=1, max_size=4), st.integers(0, 99))
def test_a_duplicate_policy_adds_no_strategy(shifts, seed):
    torch.manual_seed(seed)
    population = [episodes(shift, number=4) for shift in shifts]
    strategies = certify(population, resamples=100).strategies
    assert len(strategies) == len(set(shifts))
    again = certify([*population, population[0]], resamples=100).strategies
    assert len(again) == len(strategies)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 7).flatmap(
        lambda n: st.tuples(
            st.just(n),
            st.lists(st.booleans(), min_size=n * (n - 1) // 2, max_size=n * (n - 1) // 2),
        )
    )
)
def test_the_largest_set_is_the_largest(population):
    number, edges = population
    pairs = [
        PairVerdict(i, j, 0.0, 0.0, 0.0, 0.0, distinct)
        for (i, j), distinct in zip(combinations(range(number), 2), edges, strict=True)
    ]
    apart = {(pair.first, pair.second) for pair in pairs if pair.distinct}
    best = max(
        size
        for size in range(1, number + 1)
        for some in combinations(range(number), size)
        if all(pair in apart for pair in combinations(some, 2))
    )
    found = largest_distinct_set(number, pairs)
    assert len(found) == best
    assert all(pair in apart for pair in combinations(found, 2))


def test_one_seed_decides_everything():
    population = [episodes(0.0), episodes(0.5)]
    assert certify(population, seed=3) == certify(population, seed=3)
    assert certify(population, seed=3) != certify(population, seed=4)


def test_single_episodes_are_refused():
    with pytest.raises(ValueError, match="Policy 2 has 1 episodes"):
        certify([episodes(0.0), episodes(0.0, number=1)])
