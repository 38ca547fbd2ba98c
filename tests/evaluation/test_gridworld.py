from dataclasses import replace
from math import inf, log, sqrt

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from evaluation.gridworld import (
    Walk,
    diversity_table,
    format_table,
    jsd_0,
    jsd_1,
    kl,
    occupancy_table,
    state_emd,
    state_l2,
    state_occupancy,
)
from sipo_trl.envs import GridPolicy, paper_policies

MAPS = st.lists(st.integers(0, 1), min_size=16, max_size=16).map(
    # A free choice of action in the inner cells; along the borders the only useful one.
    lambda bits: torch.nn.functional.pad(torch.tensor(bits).view(4, 4), (0, 1, 0, 1))
)


def walk(actions: torch.Tensor) -> Walk:
    actions[:, -1] = 1
    return Walk.of(GridPolicy(actions))


def test_table_1_of_the_paper():
    table = diversity_table()
    expected = {
        ("pi1", "pi2"): {
            "kl": inf,
            "jsd_1": log(2),
            "jsd_0": 1 / 2,
            "action_l2": sqrt(7),
            "state_l2": 2 * sqrt(2),
            "state_emd": 4 * sqrt(2),
        },
        ("pi1", "pi3"): {
            "kl": inf,
            "jsd_1": log(2),
            "jsd_0": 1 / 8,
            "action_l2": 1.0,
            "state_l2": 2 * sqrt(6),
            "state_emd": 8 * sqrt(2),
        },
    }
    assert table.keys() == expected.keys()
    for pair, row in expected.items():
        assert table[pair] == pytest.approx(row, rel=1e-12)


def test_occupancies_cannot_order_what_the_emd_can():
    table = occupancy_table()
    assert table["pi3", "pi4"] == pytest.approx({"state_occupancy": 1, "state_emd": 7 * sqrt(2)})
    assert table["pi3", "pi5"] == pytest.approx({"state_occupancy": 1, "state_emd": 16 * sqrt(2)})


def test_the_table_prints():
    text = format_table(diversity_table())
    assert [line[:8].rstrip() for line in text.splitlines()] == ["pair", "pi1, pi2", "pi1, pi3"]
    for cell in ("inf", "0.6931", "0.5000", "0.1250", "2.6458", "5.6569", "11.3137"):
        assert cell in text.split()


@settings(max_examples=25, deadline=None)
@given(MAPS, MAPS)
def test_the_state_emd_is_the_papers_linear_program(first, second):
    p, q = walk(first), walk(second)
    # When a state was visited does not matter.
    q = replace(q, states=np.concatenate([q.states[:1], q.interior[::-1]]))
    cost = np.linalg.norm(p.interior[:, None] - q.interior[None], axis=-1)
    ones, eye = np.ones((1, 7)), np.eye(7)
    marginals = np.concatenate([np.kron(eye, ones), np.kron(ones, eye)])
    transport = linprog(cost.ravel(), A_eq=marginals, b_eq=np.ones(14))
    assert state_emd(p, q) == pytest.approx(transport.fun, abs=1e-9)


@settings(max_examples=25, deadline=None)
@given(MAPS, MAPS)
def test_measures_of_any_two_policies(first, second):
    p, q = walk(first), walk(second)
    visited = {tuple(cell) for cell in np.concatenate([p.states, q.states])}
    agree = all((first == second)[cell] for cell in visited)
    assert kl(p, q) == (0 if agree else inf)
    assert jsd_1(p, q) == pytest.approx(0 if agree else log(2))
    disagreements = [bool((first != second)[tuple(cell)]) for cell in [*p.states, *q.states]]
    assert jsd_0(p, q) == pytest.approx(np.mean(disagreements))
    shared = {tuple(cell) for cell in p.interior} & {tuple(cell) for cell in q.interior}
    assert state_occupancy(p, q) == pytest.approx(1 - len(shared) / 7)
    assert state_emd(p, q) <= np.linalg.norm(p.interior - q.interior, axis=-1).sum() + 1e-9
    assert (state_l2(p, q) == 0) == (len(shared) == 7)


def test_a_policy_does_not_differ_from_itself():
    pi = Walk.of(paper_policies()["pi4"])
    for measure in (kl, jsd_1, jsd_0, state_l2, state_emd, state_occupancy):
        assert measure(pi, pi) == pytest.approx(0)
