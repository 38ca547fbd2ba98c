from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sipo_trl.envs import solve_itr, solve_pbt

# Whole rewards make sums exact and ties common. Points and thresholds lie on two grids, one exact
# in binary and one not: many distances are delta but for rounding, the others clearly are not.
REWARDS = st.integers(-20, 20)
POINTS = st.integers(-30, 30).map(lambda k: 0.1 * k) | st.integers(-50, 50).map(lambda k: k / 16)
DELTAS = st.integers(1, 20).map(lambda k: 0.1 * k) | st.integers(1, 40).map(lambda k: k / 16)
PROBLEMS = st.lists(st.tuples(POINTS, REWARDS), min_size=1, max_size=9)


def apart(points, delta):
    return all(abs(x - y) >= delta - 1e-8 for x, y in combinations(points, 2))


def brute_force(points, rewards, m, delta):
    """Greatest total of any m points that are delta apart, or None."""
    pools = combinations(range(len(points)), m)
    totals = [
        sum(rewards[i] for i in pool) for pool in pools if apart([points[i] for i in pool], delta)
    ]
    return max(totals, default=None)


@given(PROBLEMS, st.integers(1, 4), DELTAS)
def test_pbt_is_the_optimum(problem, m, delta):
    points, rewards = zip(*problem, strict=True)
    expected = brute_force(points, rewards, m, delta)
    if expected is None:
        with pytest.raises(ValueError, match="lower delta or m"):
            solve_pbt(points, rewards, m, delta)
        return
    solution = solve_pbt(points, rewards, m, delta)
    assert solution.total == expected
    assert len(solution.points) == m
    assert apart(solution.points, delta)
    assert set(zip(solution.points, solution.rewards, strict=True)) <= set(problem)


@given(PROBLEMS, st.integers(1, 4), DELTAS)
def test_itr_takes_the_best_that_is_left(problem, m, delta):
    points, rewards = map(np.asarray, zip(*problem, strict=True))
    try:
        solution = solve_itr(points, rewards, m, delta)
    except ValueError as error:
        assert "lower delta or m" in str(error)  # noqa: PT017
        return
    assert len(solution.points) == m
    for i, reward in enumerate(solution.rewards):
        earlier = solution.points[:i]
        far = (np.abs(points[:, None] - earlier) >= delta - 1e-8).all(1)
        assert reward == rewards[far].max()
        assert (np.abs(solution.points[i] - earlier) >= delta - 1e-8).all()


@given(PROBLEMS, st.integers(1, 5), DELTAS)
def test_theorem_1_itr_with_half_the_threshold_is_never_worse(problem, m, delta):
    points, rewards = zip(*problem, strict=True)
    try:
        population = solve_pbt(points, rewards, m, delta)
    except ValueError:
        assume(False)
    assert solve_itr(points, rewards, m, delta / 2).total >= population.total


@pytest.mark.parametrize("delta", [1.0, 0.3, 1e-3, 700.0])
def test_the_worst_case_of_the_paper(delta):
    # Each peak of the population lies within delta of the slightly better point between two.
    points = delta * np.array([0.0, 0.5, 1.0, 3.0, 4.5])
    rewards = np.array([1.0, 1.1, 1.0, 0.1, 0.0])
    population = solve_pbt(points, rewards, 3, delta)
    assert population.rewards.tolist() == [1.0, 1.0, 0.1]
    greedy = solve_itr(points, rewards, 3, delta)
    assert greedy.rewards.tolist() == [1.1, 0.1, 0.0]
    halved = solve_itr(points, rewards, 3, delta / 2)
    assert halved.rewards.tolist() == [1.1, 1.0, 1.0]
    assert greedy.total < population.total < halved.total


@pytest.mark.parametrize("solve", [solve_pbt, solve_itr])
def test_rounding_does_not_bring_points_closer(solve):
    assert 0.7 - 0.4 < 0.3
    assert sorted(solve([0.7, 0.4, 0.5], [1.0, 1.0, 0.0], 2, 0.3).points) == [0.4, 0.7]


def test_itr_can_block_itself_where_a_population_fits():
    points, rewards = [0.0, 1.0, 2.0], [0.0, 1.0, 0.0]
    assert solve_pbt(points, rewards, 2, 2.0).points.tolist() == [0.0, 2.0]
    with pytest.raises(ValueError, match="after 1 of 2 points"):
        solve_itr(points, rewards, 2, 2.0)


@pytest.mark.parametrize("solve", [solve_pbt, solve_itr])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.0, 1.0], [1.0], 1, 1.0), "one reward per point"),
        (([], [], 1, 1.0), "one reward per point"),
        (([0.0], [float("-inf")], 1, 1.0), "finite"),
        (([0.0], [1.0], 0, 1.0), "m is 0"),
        (([0.0], [1.0], 1, 0.0), "delta is 0.0"),
    ],
)
def test_wrong_arguments_say_what_to_do(solve, arguments, message):
    with pytest.raises(ValueError, match=message):
        solve(*arguments)
