import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tensordict import TensorDict
from tensordict.nn import TensorDictModule
from torchrl.modules import RunningValueNorm
from torchrl.objectives.value import GAE, MultiAgentGAE

from sipo_trl.objectives import HeadValueNorm, MultiHeadGAE

GAMMA, LMBDA = 0.97, 0.9


def by_hand(reward, value, next_value, done, terminated, gamma=GAMMA, lmbda=LMBDA):
    """GAE of one head of one environment, as the paper on GAE writes it."""
    advantage, running = [0.0] * len(reward), 0.0
    for t in reversed(range(len(reward))):
        bootstrap = 0.0 if terminated[t] else gamma * next_value[t]
        running = reward[t] + bootstrap - value[t] + (0.0 if done[t] else gamma * lmbda * running)
        advantage[t] = running
    return advantage


def make_batch(envs=3, steps=12, heads=4, ends=0.3, dtype=torch.float64, extra=()):
    done = torch.rand(envs, steps, 1) < ends
    return TensorDict(
        {
            "state_value": torch.randn(envs, steps, *extra, heads, dtype=dtype),
            "next": {
                "state_value": torch.randn(envs, steps, *extra, heads, dtype=dtype),
                "reward": torch.randn(envs, steps, heads, dtype=dtype),
                "done": done,
                "terminated": done & (torch.rand(envs, steps, 1) < 0.5),
            },
        },
        [envs, steps],
    )


@settings(deadline=None, max_examples=50)
@given(
    st.integers(1, 4),
    st.integers(1, 20),
    st.integers(1, 5),
    st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    st.integers(0, 10_000),
)
def test_every_head_is_exact(envs, steps, heads, ends, seed) -> None:
    torch.manual_seed(seed)
    batch = make_batch(envs, steps, heads, ends)
    MultiHeadGAE(gamma=GAMMA, lmbda=LMBDA, value_network=None)(batch)
    following = batch["next"]
    for env in range(envs):
        flags = (following[k][env, :, 0].tolist() for k in ("done", "terminated"))
        done, terminated = flags
        for head in range(heads):
            expected = by_hand(
                following["reward"][env, :, head].tolist(),
                batch["state_value"][env, :, head].tolist(),
                following["state_value"][env, :, head].tolist(),
                done,
                terminated,
            )
            assert batch["advantage"][env, :, head].tolist() == pytest.approx(expected, abs=1e-6)
    torch.testing.assert_close(batch["value_target"], batch["advantage"] + batch["state_value"])


@pytest.mark.parametrize("steps", [1, 2, 37])
def test_one_head_is_torchrls_gae(steps) -> None:
    batch = make_batch(steps=steps, heads=1)
    ours = MultiHeadGAE(gamma=GAMMA, lmbda=LMBDA, value_network=None)(batch.clone())
    theirs = GAE(gamma=GAMMA, lmbda=LMBDA, value_network=None, vectorized=False)(batch.clone())
    for key in ("advantage", "value_target"):
        torch.testing.assert_close(ours[key], theirs[key], rtol=1e-5, atol=1e-6)


def test_one_head_of_a_team_is_torchrls_multi_agent_gae() -> None:
    batch = make_batch(heads=1, extra=(5,))
    ours = MultiHeadGAE(gamma=GAMMA, lmbda=LMBDA, value_network=None)(batch.clone())
    theirs = MultiAgentGAE(gamma=GAMMA, lmbda=LMBDA, value_network=None)(batch.clone())
    torch.testing.assert_close(ours["advantage"], theirs["advantage"], rtol=1e-5, atol=1e-6)


def test_agents_share_the_teams_rewards() -> None:
    batch = make_batch(heads=3, extra=(2,))
    together = MultiHeadGAE(gamma=GAMMA, lmbda=LMBDA, value_network=None)(batch.clone())
    for agent in range(2):
        alone = batch.clone()
        alone["state_value"] = alone["state_value"][..., agent, :]
        alone["next", "state_value"] = alone["next", "state_value"][..., agent, :]
        MultiHeadGAE(gamma=GAMMA, lmbda=LMBDA, value_network=None)(alone)
        torch.testing.assert_close(together["advantage"][..., agent, :], alone["advantage"])


def test_the_future_after_an_episodes_end_changes_nothing() -> None:
    batch = make_batch(envs=1, steps=10, ends=0.0)
    batch["next", "done"][0, 4] = True
    changed = batch.clone()
    changed["next", "reward"][0, 5:] += 100
    changed["next", "state_value"][0, 5:] += 100
    gae = MultiHeadGAE(gamma=GAMMA, lmbda=LMBDA, value_network=None)
    before, after = gae(batch)["advantage"], gae(changed)["advantage"]
    assert torch.equal(before[0, :5], after[0, :5])
    assert not torch.equal(before[0, 5:], after[0, 5:])


def test_truncation_bootstraps_and_termination_does_not_even_from_nan() -> None:
    batch = make_batch(envs=2, steps=1, heads=2, ends=1.0)
    batch["next", "terminated"] = torch.tensor([[[True]], [[False]]])
    batch["next", "state_value"][0] = torch.nan
    MultiHeadGAE(gamma=GAMMA, lmbda=LMBDA, value_network=None)(batch)
    delta = batch["next", "reward"] - batch["state_value"]
    torch.testing.assert_close(batch["advantage"][0], delta[0])
    torch.testing.assert_close(
        batch["advantage"][1], delta[1] + GAMMA * batch["next", "state_value"][1]
    )


def test_intrinsic_heads_may_end_where_the_episode_is_cut() -> None:
    batch = make_batch(envs=1, steps=1, heads=3, ends=1.0)
    batch["next", "terminated"].fill_(False)
    MultiHeadGAE(gamma=GAMMA, lmbda=LMBDA, value_network=None, bootstrap_intrinsic=False)(batch)
    delta = batch["next", "reward"] - batch["state_value"]
    delta[..., :1] += GAMMA * batch["next", "state_value"][..., :1]
    torch.testing.assert_close(batch["advantage"], delta)


def test_intrinsic_rewards_follow_the_tasks_and_are_scaled_for_the_gradient_only() -> None:
    batch = make_batch(heads=3)
    joined = batch["next", "reward"].clone()
    batch["next", "reward"], batch["next", "intrinsic_reward"] = joined[..., :1], joined[..., 1:]
    plain = MultiHeadGAE(gamma=GAMMA, lmbda=LMBDA, value_network=None)(batch.clone())
    batch_joined = batch.clone().exclude(("next", "intrinsic_reward"))
    batch_joined["next", "reward"] = joined
    expected = MultiHeadGAE(gamma=GAMMA, lmbda=LMBDA, value_network=None)(batch_joined)
    torch.testing.assert_close(plain["advantage"], expected["advantage"])

    norm = RunningValueNorm(shape=2).double()
    scaled = MultiHeadGAE(gamma=GAMMA, lmbda=LMBDA, value_network=None, intrinsic_norm=norm)(batch)
    assert torch.equal(scaled["next", "intrinsic_reward"], joined[..., 1:])
    deviation = joined[..., 1:].flatten(0, 1).std(0, correction=0)
    batch_joined["next", "reward"] = torch.cat([joined[..., :1], joined[..., 1:] / deviation], -1)
    expected = MultiHeadGAE(gamma=GAMMA, lmbda=LMBDA, value_network=None)(batch_joined)
    torch.testing.assert_close(scaled["advantage"], expected["advantage"], rtol=1e-4, atol=1e-4)


def test_a_normalised_critic_is_brought_back_to_the_rewards_scale() -> None:
    batch = make_batch(heads=2)
    norm = HeadValueNorm(shape=2).double()
    norm.update(torch.randn(50, 2, dtype=torch.float64) * torch.tensor([3.0, 0.1]) + 5)
    real = batch.clone()
    for key in ("state_value", ("next", "state_value")):
        batch[key] = norm.normalize(batch[key])
    gae = MultiHeadGAE(gamma=GAMMA, lmbda=LMBDA, value_network=None, value_norm=norm)
    expected = MultiHeadGAE(gamma=GAMMA, lmbda=LMBDA, value_network=None)(real)
    torch.testing.assert_close(gae(batch)["advantage"], expected["advantage"])


def test_the_critic_is_asked_about_both_ends_of_each_step() -> None:
    critic = TensorDictModule(torch.nn.Linear(3, 2), ["observation"], ["state_value"])
    batch = make_batch(heads=2, dtype=torch.float32).exclude("state_value", ("next", "state_value"))
    batch["observation"], batch["next", "observation"] = torch.randn(2, 3, 12, 3)
    estimate = MultiHeadGAE(gamma=GAMMA, lmbda=LMBDA, value_network=critic)(batch)
    assert not estimate["advantage"].requires_grad
    torch.testing.assert_close(
        estimate["next", "state_value"], critic.module(batch["next", "observation"])
    )
    detached = batch.exclude("advantage", "value_target")
    target = MultiHeadGAE(gamma=GAMMA, lmbda=LMBDA, value_network=critic).value_estimate(detached)
    torch.testing.assert_close(target, estimate["value_target"])
    assert "advantage" not in detached.keys()


def test_a_recurrent_critic_gets_the_stored_hidden_state_and_no_reset_at_the_end() -> None:
    seen = []

    def record(observation, hidden, is_init):
        seen.append((hidden.clone(), is_init.clone()))
        return observation[..., :1]

    critic = TensorDictModule(record, ["observation", "hidden", "is_init"], ["state_value"])
    batch = make_batch(heads=1, dtype=torch.float32)
    batch["observation"], batch["next", "observation"] = torch.randn(2, 3, 12, 3)
    batch["hidden"], batch["next", "hidden"] = torch.randn(2, 3, 12, 4)
    batch["is_init"] = torch.rand(3, 12, 1) < 0.5
    batch["next", "is_init"] = torch.rand(3, 12, 1) < 0.5
    MultiHeadGAE(gamma=GAMMA, lmbda=LMBDA, value_network=critic)(batch)
    (root_hidden, root_init), (next_hidden, next_init) = seen
    assert torch.equal(root_hidden, batch["hidden"])
    assert torch.equal(root_init, batch["is_init"])
    assert torch.equal(next_hidden, batch["next", "hidden"])
    assert not next_init.any()


def test_discounts_may_differ_between_heads() -> None:
    batch = make_batch(heads=2)
    both = MultiHeadGAE(gamma=torch.tensor([0.5, 0.99]), lmbda=LMBDA, value_network=None)
    one = MultiHeadGAE(gamma=0.99, lmbda=LMBDA, value_network=None)
    torch.testing.assert_close(
        both(batch.clone())["advantage"][..., 1], one(batch.clone())["advantage"][..., 1]
    )


def test_keys_can_be_nested() -> None:
    batch = make_batch(heads=2)
    nested = TensorDict(
        {
            "critic": {"value": batch["state_value"]},
            "next": {
                "critic": {"value": batch["next", "state_value"]},
                "team": {"reward": batch["next", "reward"]},
                "done": batch["next", "done"],
                "terminated": batch["next", "terminated"],
            },
        },
        batch.batch_size,
    )
    gae = MultiHeadGAE(gamma=GAMMA, lmbda=LMBDA, value_network=None)
    gae.set_keys(
        value=("critic", "value"), reward=("team", "reward"), advantage=("critic", "advantage")
    )
    expected = MultiHeadGAE(gamma=GAMMA, lmbda=LMBDA, value_network=None)(batch)["advantage"]
    torch.testing.assert_close(gae(nested)["critic", "advantage"], expected)


def test_time_may_stand_first() -> None:
    batch = make_batch()
    gae = MultiHeadGAE(gamma=GAMMA, lmbda=LMBDA, value_network=None)
    expected = gae(batch.clone())["advantage"]
    turned = gae(batch.transpose(0, 1).contiguous(), time_dim=0)["advantage"]
    torch.testing.assert_close(turned.transpose(0, 1), expected)


def test_runs_without_reading_the_device() -> None:
    critic = TensorDictModule(torch.nn.Linear(3, 3), ["observation"], ["state_value"])
    gae = MultiHeadGAE(
        gamma=GAMMA,
        lmbda=LMBDA,
        value_network=critic,
        value_norm=HeadValueNorm(shape=3),
        intrinsic_norm=RunningValueNorm(shape=2),
    ).to("meta")
    critic.to("meta")
    batch = make_batch(heads=1, dtype=torch.float32).exclude("state_value", ("next", "state_value"))
    batch["observation"], batch["next", "observation"] = torch.randn(2, 3, 12, 3)
    batch["next", "intrinsic_reward"] = torch.randn(3, 12, 2)
    assert gae(batch.to("meta"))["advantage"].shape == (3, 12, 3)


def test_compiles_into_one_graph() -> None:
    gae = MultiHeadGAE(gamma=GAMMA, lmbda=LMBDA, value_network=None)
    batch = make_batch(steps=4, dtype=torch.float32)
    compiled = torch.compile(gae, fullgraph=True, backend="eager")(batch.clone())
    torch.testing.assert_close(compiled["advantage"], gae(batch)["advantage"])


def test_wrong_shapes_are_named() -> None:
    gae = MultiHeadGAE(gamma=GAMMA, lmbda=LMBDA, value_network=None)
    batch = make_batch(heads=3)
    batch["next", "reward"] = batch["next", "reward"][..., :2]
    with pytest.raises(ValueError, match="one entry per value head"):
        gae(batch)
    with pytest.raises(KeyError, match="Without a value_network"):
        gae(make_batch().exclude("state_value"))
    with pytest.raises(ValueError, match="time dimension"):
        gae(make_batch()[0, 0])
