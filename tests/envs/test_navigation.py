import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tensordict import TensorDict
from torch import nn
from torchrl.collectors import Collector
from torchrl.envs.utils import check_env_specs

from sipo_trl.envs import (
    NavigationEnv,
    draw_landmarks,
    most_frequent_landmark,
    touched_landmark,
)

CROSS = torch.tensor([[0.5, 0.0], [0.0, 0.5], [-0.5, 0.0], [0.0, -0.5]])


def random_steps(env: NavigationEnv, steps: int, seed: int) -> list[TensorDict]:
    """Transitions under random velocities, with the resets that TorchRL makes between them."""
    generator = torch.Generator().manual_seed(seed)
    data, transitions = env.reset(), []
    for _ in range(steps):
        data["action"] = 3 * torch.randn(*env.batch_size, 2, generator=generator)
        transition, data = env.step_and_maybe_reset(data)
        transitions.append(transition.clone())
    return transitions


@pytest.mark.parametrize("batch_size", [(), (3,), (2, 3)])
def test_it_is_a_valid_torchrl_environment(batch_size):
    check_env_specs(NavigationEnv(num_landmarks=5, batch_size=batch_size, seed=0))


def test_every_copy_follows_the_paper_step_by_step():
    env = NavigationEnv(batch_size=[16], landmarks=CROSS, horizon=25)
    agents = [(0.0, 0.0, 0)] * 16
    touched = expired = 0
    for transition in random_steps(env, steps=120, seed=0):
        before, actions, after = (transition[key] for key in ("diversity_state", "action", "next"))
        for i, (x, y, steps) in enumerate(agents):
            assert before[i].tolist() == pytest.approx([x, y], abs=1e-6)
            x += 0.1 * min(max(actions[i, 0].item(), -1.0), 1.0)
            y += 0.1 * min(max(actions[i, 1].item(), -1.0), 1.0)
            steps += 1
            near = [j for j, (u, v) in enumerate(CROSS) if math.hypot(x - u, y - v) < 0.15]
            seen = [x, y, *CROSS.flatten().tolist()]
            assert after["observation"][i].tolist() == pytest.approx(seen, abs=1e-6)
            assert after["diversity_state"][i].tolist() == pytest.approx([x, y], abs=1e-6)
            assert after["landmark"][i].item() == (near[0] if near else -1)
            for key in ("reward", "success", "terminated"):
                assert after[key][i].item() == bool(near)
            assert after["truncated"][i].item() == (steps == 25)
            assert after["done"][i].item() == (bool(near) or steps == 25)
            touched, expired = touched + bool(near), expired + (steps == 25)
            agents[i] = (0.0, 0.0, 0) if near or steps == 25 else (x, y, steps)
    assert touched > 20
    assert expired > 20


def test_an_untouched_episode_is_truncated_after_a_thousand_steps():
    env = NavigationEnv(batch_size=[2], seed=0)
    rollout = env.rollout(2000, lambda td: td.set("action", torch.zeros(2, 2)))
    assert rollout.shape == (2, 1000)
    assert env.horizon == 1000
    assert rollout["next", "truncated"].sum(1).tolist() == [[1], [1]]
    assert not rollout["next", "terminated"].any()


def test_a_partial_reset_leaves_the_other_copies_alone():
    env = NavigationEnv(batch_size=[4], landmarks=CROSS)
    data = env.reset().set("action", torch.full((4, 2), 0.3))
    data = env.step(data)["next"].exclude("reward")
    data["_reset"] = torch.tensor([[True], [False], [False], [True]])
    data = env.reset(data)
    expected = torch.tensor([[0.0, 0.0], [0.03, 0.03], [0.03, 0.03], [0.0, 0.0]])
    torch.testing.assert_close(data["diversity_state"], expected)
    torch.testing.assert_close(data["observation"][:, :2], expected)
    torch.testing.assert_close(env.position, expected)
    assert env.step_count.flatten().tolist() == [0, 1, 1, 0]


def test_copies_that_have_finished_wait_for_the_others():
    env = NavigationEnv(batch_size=[2], landmarks=CROSS)
    data = env.reset().set("action", torch.tensor([[1.0, 0.0], [0.0, 0.5]]))
    for _ in range(4):
        data = env.step(data)["next"].set("action", data["action"])
    assert data["landmark"].flatten().tolist() == [0, -1]
    data["_step"] = ~data["done"].squeeze(-1)
    after = env.step(data)["next"]
    torch.testing.assert_close(after["diversity_state"], torch.tensor([[0.4, 0.0], [0.0, 0.25]]))
    assert after["done"].flatten().tolist() == [True, False]
    assert after["reward"].flatten().tolist() == [0.0, 0.0]
    assert env.step_count.flatten().tolist() == [4, 5]


def test_a_restored_environment_continues_bit_for_bit():
    original = NavigationEnv(batch_size=[8], seed=0, horizon=20)
    random_steps(original, steps=33, seed=1)
    snapshot = original.state_dict()
    data = TensorDict(action=torch.randn(8, 2), batch_size=[8])
    expected = original.step(data.clone())["next"]
    random_steps(original, steps=7, seed=2)

    restored = NavigationEnv(batch_size=[8], seed=99, horizon=20)
    restored.load_state_dict(snapshot)
    actual = restored.step(data)["next"]
    assert set(actual.keys()) == set(expected.keys())
    assert (actual == expected).all()


def test_writing_to_what_it_returns_does_not_move_the_agents():
    env = NavigationEnv(batch_size=[3], seed=0)
    data = env.reset()
    data["observation"].fill_(7.0)
    data["diversity_state"].fill_(7.0)
    after = env.step(data.set("action", torch.zeros(3, 2)))["next"]
    assert (after["diversity_state"] == 0).all()
    assert (after["observation"][:, 2:] == env.landmarks.flatten()).all()


def test_nothing_is_read_on_the_host_in_a_step():
    env = NavigationEnv(batch_size=[8], seed=0)
    nn.Module.to(env, "meta")  # specs cannot live there, so only the buffers go
    after = env._step(TensorDict(action=torch.zeros(8, 2, device="meta"), batch_size=[8]))
    assert after["observation"].shape == (8, 10)
    reset = torch.ones(8, 1, dtype=torch.bool, device="meta")
    assert env._reset(TensorDict(_reset=reset, batch_size=[8]))["done"].shape == (8, 1)


def test_a_collector_gives_final_states_and_fresh_starts():
    env = NavigationEnv(batch_size=[32], seed=0, horizon=40)
    collector = Collector(env, env.rand_action, frames_per_batch=32 * 200)
    data = collector.next()
    collector.shutdown()
    done = data["next", "done"].squeeze(-1)
    final = data["next", "diversity_state"][done]
    assert len(final) > 32
    touching = torch.cdist(final, env.landmarks).amin(-1) < 0.15
    assert (touching == data["next", "success"][done].squeeze(-1)).all()
    starts = data["diversity_state"][:, 1:][done[:, :-1]]
    assert (starts == 0).all()
    kept = data["diversity_state"][:, 1:] == data["next", "diversity_state"][:, :-1]
    assert kept[~done[:, :-1]].all()


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_layouts_keep_the_distances_of_the_paper(count, seed):
    landmarks = draw_landmarks(count, seed=seed)
    assert landmarks.shape == (count, 2)
    radius = landmarks.norm(dim=-1)
    assert radius.min() >= 0.16 - 1e-6
    assert radius.max() <= 1 + 1e-6
    if count > 1:
        assert torch.pdist(landmarks).min() >= 0.7 - 1e-6


def test_single_landmarks_fill_the_annulus_evenly():
    landmarks = torch.cat([draw_landmarks(1, seed=seed) for seed in range(2000)])
    area = (landmarks.square().sum(-1) - 0.16**2) / (1 - 0.16**2)
    turn = torch.atan2(landmarks[:, 1], landmarks[:, 0]) / (2 * torch.pi) + 0.5
    for share in (area, turn):
        counts = torch.histc(share, bins=10, min=0, max=1)
        # Chi-square with 9 degrees of freedom: above 27.9 with probability 0.001.
        assert ((counts - 200).square() / 200).sum() < 27.9


def test_the_seed_alone_decides_the_layout():
    first = NavigationEnv(num_landmarks=5, seed=3).landmarks
    torch.rand(10)
    again = NavigationEnv(num_landmarks=5, batch_size=[7], seed=3).landmarks
    assert torch.equal(first, again)
    assert not torch.equal(first, NavigationEnv(num_landmarks=5, seed=4).landmarks)
    torch.manual_seed(0)
    unseeded = NavigationEnv().landmarks
    assert not torch.equal(unseeded, NavigationEnv().landmarks)
    torch.manual_seed(0)
    assert torch.equal(unseeded, NavigationEnv().landmarks)


def test_seeding_a_run_does_not_change_its_world():
    env = NavigationEnv(seed=0)
    before = env.landmarks.clone()
    env.set_seed(1)
    env.reset()
    assert torch.equal(env.landmarks, before)


def test_given_landmarks_are_used():
    env = NavigationEnv(landmarks=CROSS[:3])
    assert env.reset()["observation"].tolist() == [0, 0, 0.5, 0, 0, 0.5, -0.5, 0]


def test_loading_a_layout_leaves_the_tensor_that_was_given_alone():
    given = CROSS.clone()
    env = NavigationEnv(landmarks=given)
    env.load_state_dict(NavigationEnv(seed=0).state_dict())
    assert torch.equal(given, CROSS)
    assert not torch.equal(env.landmarks, CROSS)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_landmarks": 0}, "num_landmarks is 0"),
        ({"num_landmarks": 12}, "at most 6"),
        ({"landmarks": torch.zeros(3)}, r"\[3\]: give centres of shape \[N, 2\]"),
        ({"landmarks": torch.tensor([[0.1, 0.1]])}, "touch the agent at its start"),
        ({"horizon": 0}, "horizon is 0"),
    ],
)
def test_wrong_settings_say_what_to_do(options, message):
    with pytest.raises(ValueError, match=message):
        NavigationEnv(**options)


def test_touching_is_closer_than_both_radii():
    positions = torch.tensor([[[0.351, 0.0], [0.349, 0.0]], [[0.0, -0.6], [0.36, 0.06]]])
    assert touched_landmark(positions, CROSS).squeeze(-1).tolist() == [[0, -1], [3, -1]]


def test_a_policy_counts_by_its_most_frequent_landmark():
    assert most_frequent_landmark(torch.tensor([[3], [-1], [1], [3]])) == 3
    assert most_frequent_landmark(torch.tensor([-1, -1, -1, 0])) == 0
    assert most_frequent_landmark(torch.tensor([-1, -1])) == -1
