import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sipo_trl.objectives import EpisodeReturns, finished_mean, whole_episode


def by_hand(reward: torch.Tensor, done: torch.Tensor) -> torch.Tensor:
    """The return so far, environment by environment and step by step."""
    result, total = torch.zeros_like(reward), torch.zeros_like(reward[:, 0])
    for t in range(reward.shape[1]):
        total = total + reward[:, t]
        result[:, t] = total
        total = torch.where(done[:, t], 0, total)
    return result


@settings(deadline=None)
@given(st.integers(1, 4), st.integers(1, 3), st.lists(st.integers(1, 6), min_size=1), st.data())
def test_episodes_survive_any_cut_into_batches(envs, heads, lengths, data) -> None:
    torch.manual_seed(data.draw(st.integers(0, 1000)))
    steps = sum(lengths)
    reward = torch.randint(-5, 6, (envs, steps, heads)).float()
    done = torch.rand(envs, steps, 1) < data.draw(st.sampled_from([0.0, 0.2, 0.7]))
    returns = EpisodeReturns([envs], heads)
    pieces = zip(reward.split(lengths, 1), done.split(lengths, 1), strict=True)
    found = torch.cat([returns(r, d) for r, d in pieces], 1)
    assert torch.equal(found, by_hand(reward, done))


def test_only_finished_episodes_count() -> None:
    returns = torch.tensor([[[1.0], [2.0], [5.0]], [[3.0], [4.0], [9.0]]])
    done = torch.tensor([[[False], [True], [False]], [[False], [True], [True]]])
    assert finished_mean(returns, done).tolist() == [5.0]
    assert finished_mean(returns, torch.zeros_like(done)).isnan().all()


def test_every_step_knows_its_whole_episode() -> None:
    returns = torch.tensor([[[1.0], [2.0], [7.0], [8.0], [3.0]]])
    done = torch.tensor([[[False], [True], [False], [True], [False]]])
    assert whole_episode(returns, done).squeeze().tolist() == [2.0, 2.0, 8.0, 8.0, 3.0]


def test_runs_without_reading_the_device() -> None:
    returns = EpisodeReturns([3], heads=2).to("meta")
    done = torch.zeros(3, 5, 1, dtype=torch.bool, device="meta")
    running = returns(torch.zeros(3, 5, 2, device="meta"), done)
    assert finished_mean(running, done).shape == (2,)
    assert whole_episode(running, done).shape == (3, 5, 2)


def test_state_dict_carries_unfinished_episodes() -> None:
    first, second = EpisodeReturns([1], 1), EpisodeReturns([1], 1)
    done = torch.tensor([[[False], [False], [True]]])
    first(torch.ones(1, 2, 1), done[:, :2])
    second.load_state_dict(first.state_dict())
    assert finished_mean(second(torch.ones(1, 3, 1), done), done).tolist() == [5.0]
