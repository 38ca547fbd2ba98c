import pytest
import torch
from tensordict.nn import TensorDictModule

from sipo_trl.envs import NavigationEnv
from sipo_trl.measures import FinalStateMeasure, RBFMeasure, WassersteinMeasure
from sipo_trl.training import evaluate

LANDMARKS = torch.tensor([[0.5, 0.0], [0.0, 0.9]])


class HeadFor(torch.nn.Module):
    """Each copy of the environment walks straight in its own direction."""

    def __init__(self, directions: torch.Tensor) -> None:
        super().__init__()
        self.directions = directions

    def forward(self, observation: torch.Tensor) -> torch.Tensor:
        return self.directions


def play(directions, measure, **options):
    env = NavigationEnv(landmarks=LANDMARKS, batch_size=[len(directions)], horizon=12)
    policy = TensorDictModule(HeadFor(torch.tensor(directions)), ["observation"], ["action"])
    return evaluate(env, policy, measure, horizon=12, **options)


EAST, NORTH, SOUTH = [1.0, 0.0], [0.0, 1.0], [0.0, -1.0]


def test_every_episode_counts_once_up_to_its_end() -> None:
    # 0.15 before the landmark at 0.5: 4 steps of 0.1; north 8 steps; south never.
    result = play([EAST, NORTH, SOUTH], RBFMeasure([]), columns=["landmark"])
    assert result.lengths.tolist() == [4, 8, 12]
    assert result.success.tolist() == [True, True, False]
    assert result.returns.tolist() == [1.0, 1.0, 0.0]
    assert result.frames == 24
    columns = result.columns
    assert columns.batch_size == (24,)
    assert columns["episode"].tolist() == [0] * 4 + [1] * 8 + [2] * 12
    assert columns["step"].tolist() == [*range(4), *range(8), *range(12)]
    torch.testing.assert_close(columns["states"][3], torch.tensor([0.4, 0.0]))
    assert columns["landmark"][[3, 11, 23], 0].tolist() == [0, 1, -1]
    metrics = result.metrics()
    assert metrics["success"] == metrics["return"] == pytest.approx(2 / 3)


def test_distances_are_episode_returns_of_the_measure() -> None:
    final = FinalStateMeasure([torch.tensor([[0.4, 0.0]]), torch.tensor([[0.0, 0.8]])])
    result = play([EAST, NORTH], final)
    apart = (0.4**2 + 0.8**2) ** 0.5
    torch.testing.assert_close(result.distances, torch.tensor([apart / 2, apart / 2]))


@pytest.mark.parametrize("mean_over", ["horizon", "steps"])
def test_distances_are_means_over_the_horizon_or_over_what_was_lived(mean_over) -> None:
    def measure(references):
        return RBFMeasure(references, variance=0.5, horizon=12, mean_over=mean_over)

    east, south = [play([way], measure([])) for way in (EAST, SOUTH)]
    played = play([EAST, SOUTH], measure([torch.zeros(1, 2)])).distances
    similarity = measure([torch.zeros(1, 2)]).reward
    states = torch.cat([east.columns["states"], south.columns["states"]])
    steps = 4 + 12 if mean_over == "steps" else 12 + 12
    torch.testing.assert_close(played, 12 * similarity(states).sum(0) / steps)


def test_a_measure_that_learns_learns_the_episodes_first() -> None:
    east, north = (play([way], RBFMeasure([])).columns["states"] for way in (EAST, NORTH))
    torch.manual_seed(0)
    same, other = play([EAST], WassersteinMeasure([east, north], normalize=False)).distances
    assert other > 0.01
    assert abs(same) < 0.01 * other


def test_fewer_states_are_kept_but_all_final_ones() -> None:
    result = play([EAST, NORTH, SOUTH], RBFMeasure([]), max_states=8)
    assert result.frames == 24
    columns = result.columns
    assert columns["step"].tolist() == [0, 3, 0, 3, 6, 7, 0, 3, 6, 9, 11]
    ends = columns["step"][[1, 5, 10]] + 1
    assert torch.equal(ends, result.lengths)
