import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sipo_trl.objectives import EpisodeReturns


def by_hand(reward: torch.Tensor, done: torch.Tensor) -> list[list[tuple[int, list[float]]]]:
    """For each environment, when its episodes end and with which returns."""
    result = []
    for rewards, dones in zip(reward.tolist(), done.squeeze(-1).tolist(), strict=True):
        total, ends = [0.0] * len(rewards[0]), []
        for t, (step, end) in enumerate(zip(rewards, dones, strict=True)):
            total = [a + b for a, b in zip(total, step, strict=True)]
            if end:
                ends.append((t, total))
                total = [0.0] * len(step)
        result.append(ends)
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
    found = torch.cat([returns.per_step(r, d) for r, d in pieces], 1)
    for env, ends in enumerate(by_hand(reward, done)):
        at = [t for t, _ in ends]
        assert found[env, at].tolist() == [total for _, total in ends]
    assert found.isnan().all(-1, keepdim=True).equal(~done)


def test_no_finished_episode_is_unknown() -> None:
    returns = EpisodeReturns([3], heads=2)
    nothing = returns(torch.ones(3, 5, 2), torch.zeros(3, 5, 1, dtype=torch.bool))
    assert nothing.isnan().all()
    assert nothing.shape == (2,)


def test_runs_without_reading_the_device() -> None:
    returns = EpisodeReturns([3], heads=2).to("meta")
    done = torch.zeros(3, 5, 1, dtype=torch.bool, device="meta")
    assert returns(torch.zeros(3, 5, 2, device="meta"), done).shape == (2,)


def test_state_dict_carries_unfinished_episodes() -> None:
    first, second = EpisodeReturns([1], 1), EpisodeReturns([1], 1)
    done = torch.tensor([[[False], [False], [True]]])
    first(torch.ones(1, 2, 1), done[:, :2])
    second.load_state_dict(first.state_dict())
    assert second(torch.ones(1, 3, 1), done).tolist() == [5.0]
