import copy

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sipo_trl.objectives import LagrangeMultipliers

numbers = st.floats(-50, 50, width=32)


def test_dual_step_is_the_papers() -> None:
    multipliers = LagrangeMultipliers(3, threshold=0.4, lr=0.5, maximum=1.0)
    for distances in ([0.1, 0.9, -5.0], [0.3, 0.0, 0.4]):
        multipliers.update(torch.tensor(distances))
    # 0 + .5*.3 + .5*.1;  max(0 - .25, 0) + .5*.4;  clipped to 1, then unchanged at the threshold
    torch.testing.assert_close(multipliers.value, torch.tensor([0.2, 0.2, 1.0]))


@given(
    st.lists(st.lists(numbers, min_size=4, max_size=4), max_size=12),
    st.floats(1e-3, 5),
    st.floats(0.1, 20),
    st.sampled_from(["at_least", "at_most"]),
)
def test_stays_within_bounds_and_moves_towards_the_violation(steps, lr, maximum, sense) -> None:
    multipliers = LagrangeMultipliers(4, [0.0, 1.0, -1.0, 5.0], lr=lr, maximum=maximum, sense=sense)
    for step in steps:
        before, distances = multipliers.value.clone(), torch.tensor(step)
        after = multipliers.update(distances)
        assert ((after >= 0) & (after <= maximum)).all()
        holds = multipliers.satisfied(distances)
        assert (after[holds] <= before[holds]).all()
        assert (after[~holds] >= before[~holds]).all()


def test_warm_up_keeps_the_initial_value() -> None:
    multipliers = LagrangeMultipliers(1, threshold=1.0, lr=0.1, warmup=2, initial=0.3)
    seen = [multipliers.update(torch.zeros(1)).item() for _ in range(4)]
    assert seen == pytest.approx([0.3, 0.3, 0.4, 0.5])


def test_fixed_multipliers_never_move() -> None:
    multipliers = LagrangeMultipliers(2, threshold=1.0, initial=0.2, fixed=True)
    multipliers.update(torch.tensor([-9.0, 9.0]))
    assert multipliers.value.tolist() == pytest.approx([0.2, 0.2])


def test_an_unknown_distance_moves_nothing() -> None:
    multipliers = LagrangeMultipliers(3, threshold=1.0, lr=1.0, initial=0.5)
    after = multipliers.update(torch.tensor([float("nan"), float("inf"), 0.0]))
    assert after.tolist() == [0.5, 0.5, 1.5]


@pytest.mark.parametrize(("sense", "sign"), [("at_least", 1.0), ("at_most", -1.0)])
def test_combination_is_linear_in_the_heads(sense, sign) -> None:
    multipliers = LagrangeMultipliers(3, threshold=0.0, sense=sense)
    multipliers.value.copy_(torch.tensor([1.0, 2.0, 0.0]))
    advantages = torch.randn(5, 7, 4)
    expected = advantages[..., 0] + 0.1 * sign * (advantages[..., 1] + 2 * advantages[..., 2])
    torch.testing.assert_close(multipliers.combine(advantages, 0.1), expected.unsqueeze(-1))


def test_no_constraint_leaves_the_task_alone() -> None:
    multipliers = LagrangeMultipliers(0, threshold=0.4)
    assert multipliers.update(torch.zeros(0)).shape == (0,)
    task = torch.randn(4, 1)
    assert torch.equal(multipliers.combine(task), task)


def test_state_dict_carries_value_threshold_and_warm_up() -> None:
    trained = LagrangeMultipliers(2, threshold=[0.1, 0.2], warmup=1)
    trained.update(torch.zeros(2))
    trained.update(torch.zeros(2))
    restored = LagrangeMultipliers(2, threshold=0.0, warmup=1)
    restored.load_state_dict(copy.deepcopy(trained.state_dict()))
    for distances in (torch.zeros(2), torch.ones(2)):
        assert torch.equal(trained.update(distances), restored.update(distances))


def test_runs_without_reading_the_device() -> None:
    multipliers = LagrangeMultipliers(2, threshold=0.1, warmup=3).to("meta")
    assert multipliers.update(torch.zeros(2, device="meta")).is_meta
    assert multipliers.combine(torch.zeros(5, 3, device="meta"), 0.5).shape == (5, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": -1, "threshold": 0.1}, "cannot be negative"),
        ({"n": 2, "threshold": [0.1]}, r"one per constraint \[2\]"),
        ({"n": 1, "threshold": 0.1, "lr": 0}, "must be positive"),
        ({"n": 1, "threshold": 0.1, "initial": 11.0}, "between 0 and maximum"),
        ({"n": 1, "threshold": 0.1, "sense": "above"}, "'at_least' or 'at_most'"),
    ],
)
def test_wrong_settings_are_named(arguments, message) -> None:
    with pytest.raises(ValueError, match=message):
        LagrangeMultipliers(**arguments)


def test_wrong_shapes_are_named() -> None:
    multipliers = LagrangeMultipliers(2, threshold=0.1)
    with pytest.raises(ValueError, match="one distance per multiplier"):
        multipliers.update(torch.zeros(3))
    with pytest.raises(ValueError, match=r"1 \+ 2 heads"):
        multipliers.combine(torch.zeros(5, 2))
