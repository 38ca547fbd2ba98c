import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from evaluation.torque import torque_distance


def test_by_hand():
    # Means (0, 0), (3, 4), (0, 2): squared distances 25, 4 and 13.
    torques = [
        torch.tensor([[1.0, 1.0], [-1.0, -1.0]]),
        torch.tensor([[3.0, 4.0]]),
        torch.tensor([[0.0, 1.0], [0.0, 3.0]]),
    ]
    assert torque_distance(torques) == pytest.approx(42 / 3)
    assert torque_distance(torques, published=True) == pytest.approx(2 * 42 / 9)


@given(st.permutations(range(4)))
def test_the_order_of_policies_does_not_matter(order):
    torques = [torch.full((3, 2), float(index**2)) for index in range(4)]
    shuffled = [torques[index] for index in order]
    assert torque_distance(shuffled) == pytest.approx(torque_distance(torques))


def test_the_same_policy_twice_is_no_distance():
    torques = torch.randn(50, 21)
    assert torque_distance([torques, torques.flip(0)]) == pytest.approx(0, abs=1e-12)


def test_bad_input_is_explained():
    with pytest.raises(ValueError, match="of 1 policies: a distance needs at least two"):
        torque_distance([torch.zeros(3, 2)])
    with pytest.raises(ValueError, match=r"same D for all policies, got \[3, 2\], \[3, 1\]"):
        torque_distance([torch.zeros(3, 2), torch.zeros(3, 1)])
