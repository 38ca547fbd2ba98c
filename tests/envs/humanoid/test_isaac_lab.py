"""Isaac Lab's environment, against a stand-in of its gymnasium interface."""

import sys
from pathlib import Path

import gymnasium
import pytest
import torch
from isaac_playing import play, sinking, sinking_policy
from torchrl.envs import CatFrames, TransformedEnv
from torchrl.envs.libs import gym as torchrl_gym
from torchrl.envs.libs import isaac_lab as torchrl_isaac_lab
from torchrl.envs.utils import check_env_specs

from sipo_trl.envs.config import HumanoidConfig
from sipo_trl.envs.humanoid import IsaacLabHumanoidEnv
from sipo_trl.envs.humanoid.isaac_lab_simulation import TASK, IsaacLabSimulation
from sipo_trl.objectives import MultiHeadGAE
from sipo_trl.training.collector import ResumableCollector

HORIZON = 8


@pytest.fixture
def make_env(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parent / "isaac_lab_standin")
    for module in (torchrl_gym, torchrl_isaac_lab):
        monkeypatch.setattr(module, "_has_isaaclab", True)
    monkeypatch.setattr(IsaacLabSimulation, "_only", None)

    def make(copies=3, **options):
        options = {"device": "cpu", "seed": 0, "horizon": HORIZON} | options
        return IsaacLabHumanoidEnv(batch_size=[copies], **options)

    yield make
    for name in [name for name in sys.modules if name.startswith("isaaclab")]:
        del sys.modules[name]
    gymnasium.registry.pop(TASK, None)


@pytest.fixture
def env(make_env):
    return make_env()


def test_it_is_a_valid_torchrl_environment(env):
    check_env_specs(env)


def test_every_transition_is_the_engines_but_for_the_last_observation(env):
    # From 1.34 m the first copy falls below 0.8 m in step 6, the second in its last one, the third
    # never.
    data = play(env, sinking(1.0, 0.7, 0.0, steps=20))
    following = data["next"]
    period = torch.tensor([[6], [HORIZON], [HORIZON]])
    sink = torch.tensor([[0.1], [0.07], [0.0]])
    step = torch.arange(20) % period  # of the episode, at the root [N, T]
    last, late = step + 1 == period, step + 1 == HORIZON
    fallen = 1.34 - sink * (step + 1) < 0.8
    expected = {
        "terminated": fallen,
        "truncated": late,
        "done": last,
        "success": late & ~fallen,
        "reward": torch.where(fallen, -1.0, 2.0),
    }
    for name, values in expected.items():
        assert torch.equal(following[name].squeeze(-1).T, values), name
    torch.testing.assert_close(data["observation"][..., 0].T, 1.34 - sink * step)
    # The last observation is not known: the one before it stands for it.
    height = 1.34 - sink * torch.where(last, step, step + 1)
    torch.testing.assert_close(following["observation"][..., 0].T, height)
    assert "alive" not in data.keys()


def test_actions_reach_the_engine_bounded_and_torques_are_those_of_the_step(env):
    actions = 3 * torch.rand(HORIZON, 3, 21) - 1.5
    actions[..., 0] = 0
    following = play(env, actions)["next"]
    bounded = actions.clamp(-1, 1)
    bounded[-1] = bounded[-2]  # of the end nothing is known but the reward
    assert (following["observation"][..., 54:] == bounded).all()
    torch.testing.assert_close(following["torque"], 70 * bounded)
    assert (following["diversity_state"] == following["observation"][..., :54]).all()


def test_time_outs_can_be_bootstrapped(env):
    data = play(env, sinking(1.0, 0.7, 0.0, steps=20)).transpose(0, 1)
    critic = torch.nn.Linear(75, 1)
    data["state_value"] = critic(data["observation"]).detach()
    data["next", "state_value"] = critic(data["next", "observation"]).detach()
    MultiHeadGAE(gamma=0.99, lmbda=0.95, value_network=None)(data)
    assert data["advantage"].isfinite().all()


def test_a_seed_decides_how_episodes_start(env):
    starts = []
    for seed in (3, 3, 4):
        env.set_seed(seed)
        starts.append(play(env, sinking(1.0, 1.0, 0.0, steps=15))["observation"][..., 2])
    assert (starts[0] == starts[1]).all()
    assert (starts[0] != starts[2]).all()


def test_a_partial_reset_starts_those_copies_alone(env):
    following = play(env, sinking(0.1, 0.1, 0.1, steps=3))["next"][-1].exclude("reward")
    root = env.reset(following.set("_reset", torch.tensor([[True], [False], [False]])))
    torch.testing.assert_close(root["observation"][:, 0], torch.tensor([1.34, 1.31, 1.31]))
    after = env.step(root.set("action", sinking(0.1, 0.1, 0.1, steps=1)[0]))["next"]
    torch.testing.assert_close(after["observation"][:, 0], torch.tensor([1.33, 1.30, 1.30]))


def test_copies_that_have_finished_wait_for_the_others(env):
    policy = sinking_policy(1.0, 0.7, 0.0)
    data = env.rollout(HORIZON, policy, break_when_any_done=False, break_when_all_done=True)
    following = data["next"]
    assert following["done"].squeeze(-1).sum(1).tolist() == [3, 1, 1]
    assert following["reward"][0, :6].flatten().tolist() == [2, 2, 2, 2, 2, -1]
    torch.testing.assert_close(following["observation"][0, 5:, 0], torch.full((3,), 0.84))
    assert (env.reset()["observation"][:, 0] == 1.34).all()


def test_a_resumed_collector_truncates_what_it_can_no_longer_know(env):
    def collector():
        stacked = TransformedEnv(env, CatFrames(2, dim=-1, in_keys=["diversity_state"]))
        return ResumableCollector(
            stacked, stacked.rand_action, frames_per_batch=6, total_frames=-1, track_traj_ids=False
        )

    first = collector()
    last = first.next()["next"][:, -1].clone()
    state = first.state_dict()
    first.next()
    second = collector()
    second.load_state_dict(state)
    data = second.next()
    assert data["next", "truncated"].squeeze(-1).tolist() == [[True, False]] * 3
    assert (data["next", "observation"][:, 0] == last["observation"]).all()
    assert (data["observation"][:, 1, 0] == 1.34).all()


def test_environments_share_the_only_simulation(make_env):
    first = make_env(3)
    data = first.reset()
    for _ in range(2):
        data = first.step_mdp(first.step(data.set("action", sinking(0.1, 0.2, 0.3, steps=1)[0])))
    second = make_env(2)
    heights = play(second, sinking(0.1, 0.1, steps=3))["next", "observation"][..., 0]
    torch.testing.assert_close(heights[-1], torch.tensor([1.31, 1.31]))
    # The first one's episodes are cut where they were last seen, and new ones begin.
    transition, data = first.step_and_maybe_reset(
        data.set("action", sinking(0.1, 0.2, 0.3, steps=1)[0])
    )
    following = transition["next"]
    assert following["truncated"].all()
    assert not following["terminated"].any()
    assert (following["observation"] == transition["observation"]).all()
    assert (data["observation"][:, 0] == 1.34).all()
    after = first.step(data.set("action", sinking(0.1, 0.2, 0.3, steps=1)[0]))["next"]
    torch.testing.assert_close(after["observation"][:, 0], torch.tensor([1.33, 1.32, 1.31]))


@pytest.mark.parametrize(("copies", "horizon"), [(4, HORIZON), (2, 9)])
def test_another_simulation_is_refused(make_env, copies, horizon):
    make_env(3)
    with pytest.raises(RuntimeError, match=f"simulates 3 copies .*: {copies} copies .*={horizon}"):
        make_env(copies, horizon=horizon)


@pytest.mark.usefixtures("make_env")
def test_settings_choose_it():
    env = HumanoidConfig(backend="isaaclab", horizon=3).make(2, seed=0)
    data = env.rollout(5, break_when_any_done=False)
    assert data["next", "diversity_state"].shape == (2, 5, 54)
    assert data["next", "truncated"].squeeze(-1).int().tolist() == [[0, 0, 1, 0, 0]] * 2
    assert data.isfinite().all()


def test_a_missing_isaac_lab_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "isaaclab", None)
    monkeypatch.setattr(IsaacLabSimulation, "_only", None)
    with pytest.raises(ImportError, match=r"backend isaaclab needs Isaac Lab .*: install it"):
        IsaacLabHumanoidEnv(batch_size=[2], device="cpu")
