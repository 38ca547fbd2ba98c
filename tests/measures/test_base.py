import pytest
import torch
from torch import Tensor

from sipo_trl.measures import (
    CrossEntropyMeasure,
    FinalStateMeasure,
    RBFMeasure,
    StateDistanceMeasure,
    WassersteinMeasure,
)

ALL = [RBFMeasure, WassersteinMeasure, FinalStateMeasure, CrossEntropyMeasure]


class Constant(StateDistanceMeasure):
    def reward(self, states: Tensor, actions: Tensor | None = None) -> Tensor:
        return states.new_ones(*states.shape[:-1], self.num_references)


def test_a_measure_without_learning_has_no_metrics():
    assert Constant(3).update(torch.zeros(5, 2)).is_empty()


@pytest.mark.parametrize("measure", ALL)
def test_an_empty_measure_gives_empty_rewards(measure):
    empty = measure([])
    assert empty.num_references == 0
    for states in (torch.zeros(4, 3, 2), torch.zeros(5, 7)):
        reward = empty.reward(states)
        assert reward.shape == (*states.shape[:-1], 0)
        assert reward.dtype == torch.float32
        assert empty.update(states).is_empty()


@pytest.mark.parametrize("measure", ALL)
def test_horizon_must_be_positive(measure):
    with pytest.raises(ValueError, match="horizon is 0"):
        measure([], horizon=0)


def test_the_bound_on_distances_follows_the_papers_delta():
    # Larger rewards are farther in all measures, but RBF's delta is a greatest similarity.
    assert all(measure.sense == "at_least" for measure in ALL)
    assert RBFMeasure([]).threshold(0.03) == -0.03
    for measure in (WassersteinMeasure, FinalStateMeasure, CrossEntropyMeasure):
        assert measure([]).threshold(0.4) == 0.4


def test_only_the_final_state_measure_waits_for_the_end():
    assert [measure.final_only for measure in ALL] == [False, False, True, False]
