import math

import pytest
import torch

from evaluation.entropy import knn_entropy


def test_by_hand():
    # On a line of unit steps the second neighbour is at 1, but at 2 for both ends.
    states = torch.arange(6.0).unsqueeze(1)
    assert knn_entropy(states, k=2) == pytest.approx((4 * math.log(2) + 2 * math.log(3)) / 6)


@pytest.mark.parametrize("features", [2, 30])
def test_including_itself_is_one_neighbour_less(features):
    states = torch.randn(200, features)
    assert knn_entropy(states, k=12, include_self=True) == knn_entropy(states, k=11)
    assert knn_entropy(states, include_self=True) < knn_entropy(states)


def test_doubles_of_every_state_leave_no_entropy():
    states = torch.randn(20, 3)
    assert knn_entropy(states.repeat(13, 1)) == 0.0
    assert knn_entropy(states.repeat(12, 1)) > 0.0


def test_farther_apart_is_more():
    states = torch.randn(100, 4)
    assert knn_entropy(2 * states) > knn_entropy(states)
