import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tensordict import TensorDict
from torch import Tensor

from sipo_trl.archive import Archive
from sipo_trl.measures import (
    FinalStateMeasure,
    RBFMeasure,
    SampledMeasure,
    StateDistanceMeasure,
    WassersteinMeasure,
)
from sipo_trl.transforms import StateDistanceReward


class Sum(StateDistanceMeasure):
    """The sum of a view's features, and twice that; learns nothing but what it was shown."""

    def __init__(self) -> None:
        super().__init__(2)
        self.shown: list[Tensor] = []

    def reward(self, states: Tensor, actions: Tensor | None = None) -> Tensor:
        return states.sum(-1, keepdim=True) * torch.tensor([1.0, 2.0])

    def update(self, states: Tensor) -> TensorDict:
        self.shown.append(states)
        return TensorDict(distance=states.mean())


class View:
    """Ten times the state; counts the states that it was asked for."""

    def __init__(self) -> None:
        self.viewed = 0

    def __call__(self, states: Tensor) -> Tensor:
        self.viewed += len(states)
        return 10 * states


def test_the_middle_of_each_piece_stands_for_the_piece():
    measure = SampledMeasure(Sum(), View(), samples=4)
    states = torch.arange(12.0).view(2, 6, 1)
    reward = measure.reward(states)
    assert reward[..., 0].tolist() == [[10, 10, 10, 40, 40, 40], [70, 70, 70, 100, 100, 100]]
    assert (reward[..., 1] == 2 * reward[..., 0]).all()


@given(count=st.integers(1, 60), samples=st.integers(1, 60))
def test_no_more_than_asked_is_viewed_and_nobody_is_far_from_it(count, samples):
    view = View()
    states = torch.arange(float(count)).unsqueeze(-1)
    reward = SampledMeasure(Sum(), view, samples=samples).reward(states)[:, 0] / 10
    assert view.viewed <= samples
    piece = -(-count // samples)
    assert (reward - states[:, 0]).abs().max() <= piece / 2


def test_where_all_can_be_viewed_it_is_the_measure_of_the_views():
    view, states = View(), torch.randn(3, 5, 2)
    reward = SampledMeasure(Sum(), view, samples=15).reward(states)
    assert (reward == Sum().reward(10 * states)).all()


def test_it_learns_from_what_it_has_looked_at_already():
    inner, view = Sum(), View()
    measure = SampledMeasure(inner, view, samples=4)
    states = torch.randn(2, 6, 3)
    measure.reward(states)
    metrics = measure.update(states)
    assert view.viewed == 4
    assert (inner.shown[0] == 10 * states[:, [1, 4]].flatten(0, 1)).all()
    assert metrics["distance"] == inner.shown[0].mean()
    measure.update(states + 1)
    assert view.viewed == 8


def test_an_empty_archive_costs_no_views(tmp_path):
    view = View()
    measure = SampledMeasure(WassersteinMeasure(Archive.create(tmp_path)), view, samples=4)
    assert measure.reward(torch.zeros(2, 6, 3)).shape == (2, 6, 0)
    assert len(measure.update(torch.zeros(2, 6, 3)).keys()) == 0
    assert view.viewed == 0
    assert (measure.view(torch.ones(3, 2)) == 10).all()


def test_a_restored_one_goes_on_bit_for_bit():
    references = [torch.randint(256, (9, 3, 16, 16), dtype=torch.uint8)]
    base = torch.randint(200, (3, 16, 16), dtype=torch.uint8)

    def view(states: Tensor) -> Tensor:
        return base + states.byte()[..., None, None]

    first, second = (
        SampledMeasure(WassersteinMeasure(references), view, samples=4) for _ in range(2)
    )
    states = 50 * torch.rand(2, 6, 1)
    for _ in range(3):
        first.update(states)
    second.load_state_dict(first.state_dict())
    assert first.update(states)["distance"] == second.update(states)["distance"]
    assert (first.reward(states) == second.reward(states)).all()


def test_constraint_and_final_states_are_the_measures_own():
    references = [torch.randn(5, 3)]
    similar = RBFMeasure(references)
    assert SampledMeasure(similar, View(), samples=4).sense == similar.sense
    assert SampledMeasure(similar, View(), samples=4).threshold(0.3) == similar.threshold(0.3)
    final = SampledMeasure(FinalStateMeasure(references), View(), samples=4)
    batch = TensorDict(
        {"next": {"diversity_state": torch.randn(1, 4, 3), "done": torch.zeros(1, 4, 1).bool()}},
        batch_size=[1, 4],
    )
    batch["next", "done"][0, 2] = True
    reward = StateDistanceReward(final)(batch)["next", "intrinsic_reward"]
    assert reward.ne(0).flatten().tolist() == [False, False, True, False]


def test_nothing_to_view_is_refused():
    with pytest.raises(ValueError, match="samples is 0"):
        SampledMeasure(Sum(), View(), samples=0)
