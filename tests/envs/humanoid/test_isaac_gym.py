"""Isaac Gym's environment, against a stand-in that runs in an interpreter of its own."""

import os
import sys
from pathlib import Path

import pytest
import torch
from isaac_playing import play, sinking, sinking_policy
from torchrl.envs import CatFrames, TransformedEnv
from torchrl.envs.utils import check_env_specs

from sipo_trl.envs.config import HumanoidConfig
from sipo_trl.envs.humanoid import IsaacGymHumanoidEnv
from sipo_trl.measures import RBFMeasure
from sipo_trl.objectives import LagrangeMultipliers
from sipo_trl.training.collector import ResumableCollector
from sipo_trl.training.config import NetworkConfig, PPOConfig
from sipo_trl.training.learner import Learner

# Python 3.8 with torch, where there is one.
ISAAC_PYTHON = os.environ.get("ISAAC_PYTHON", sys.executable)
HORIZON = 8


@pytest.fixture(scope="module")
def env():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parent / "isaac_gym_standin"))
        env = IsaacGymHumanoidEnv(
            batch_size=[3], isaac_python=ISAAC_PYTHON, device="cpu", seed=0, horizon=HORIZON
        )
    yield env
    env.close()


def test_it_is_a_valid_torchrl_environment(env):
    check_env_specs(env)


def test_every_transition_is_the_engines_and_late_resets_are_marked(env):
    # From 1.34 m the first copy falls below 0.8 m in step 6, the second in its last one, the third
    # never. One more step starts each of them anew.
    data = play(env, sinking(1.0, 0.7, 0.0, steps=20))
    following = data["next"]
    period = torch.tensor([[6], [HORIZON], [HORIZON]]) + 1
    step = (torch.arange(20) + 1) % period  # of the episode [N, T]
    height = 1.34 - torch.tensor([[0.1], [0.07], [0.0]]) * step
    fallen, late = height < 0.8, step == HORIZON
    assert fallen.any(1).tolist() == [True, True, False]
    reward = torch.where(fallen, -1.0, 2.0).masked_fill(step == 0, 0.0)
    expected = {
        "terminated": fallen,
        "truncated": late,
        "done": fallen | late,
        "success": late & ~fallen,
        "reward": reward,
    }
    for name, values in expected.items():
        assert torch.equal(following[name].squeeze(-1).T, values), name
    assert torch.equal(data["alive"].squeeze(-1).T, step != 0)
    torch.testing.assert_close(following["observation"][..., 0].T, height)
    # Each root is where the transition before it ended, also from one episode to the next.
    assert (data["observation"][1:] == following["observation"][:-1]).all()


def test_actions_reach_the_engine_bounded_and_torques_come_back(env):
    actions = 3 * torch.rand(4, 3, 21) - 1.5
    following = play(env, actions)["next"]
    bounded = actions.clamp(-1, 1)
    assert (following["observation"][..., 87:] == bounded).all()
    torch.testing.assert_close(following["torque"], 70 * bounded)
    torch.testing.assert_close(following["reward"], 2 + bounded[..., 1:2])
    assert (following["diversity_state"] == following["observation"][..., :54]).all()


def test_a_seed_decides_how_episodes_start(env):
    starts = []
    for seed in (3, 3, 4):
        env.set_seed(seed)
        starts.append(play(env, sinking(1.0, 1.0, 0.0, steps=15))["observation"][..., 4])
    assert (starts[0] == starts[1]).all()
    assert (starts[0] != starts[2]).all()
    assert len(starts[0].unique()) == 8  # three episodes of the first two copies, two of the third


def test_a_partial_reset_starts_those_copies_alone(env):
    following = play(env, sinking(0.1, 0.1, 0.1, steps=3))["next"][-1].exclude("reward")
    root = env.reset(following.set("_reset", torch.tensor([[True], [False], [False]])))
    assert (root["observation"] == following["observation"]).all()
    assert root["alive"].flatten().tolist() == [False, True, True]
    after = env.step(root.set("action", sinking(0.1, 0.1, 0.1, steps=1)[0]))["next"]
    height = torch.tensor([1.34, 1.30, 1.30])
    torch.testing.assert_close(after["observation"][:, 0], height)
    assert after["reward"].flatten().tolist() == [0, 2, 2]
    assert after["alive"].all()


def test_copies_that_have_finished_wait_for_the_others(env):
    policy = sinking_policy(1.0, 0.7, 0.0)
    data = env.rollout(HORIZON, policy, break_when_any_done=False, break_when_all_done=True)
    following = data["next"]
    assert following["done"].squeeze(-1).sum(1).tolist() == [3, 1, 1]
    assert following["reward"][0, :6].flatten().tolist() == [2, 2, 2, 2, 2, -1]
    torch.testing.assert_close(following["observation"][0, 5:, 0], torch.full((3,), 0.74))
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
    assert (data["observation"][:, 0] == last["observation"]).all()
    assert data["next", "truncated"].squeeze(-1).tolist() == [[True, False]] * 3
    assert (data["next", "observation"][:, 0] == last["observation"]).all()
    assert data["alive"].squeeze(-1).tolist() == [[True, False]] * 3
    assert (data["next", "observation"][:, 1, 0] == 1.34).all()


def test_training_leaves_the_steps_out_that_only_reset(env):
    def learned(data):
        torch.manual_seed(0)
        learner = Learner(
            env,
            RBFMeasure([torch.randn(5, 54)]),
            LagrangeMultipliers(1, 0.4),
            network=NetworkConfig(hidden=[8], distribution="normal"),
            ppo=PPOConfig(epochs=2, minibatches=2),
        )
        batch = learner.actor(data).detach()
        learner.update(batch)
        return torch.nn.utils.parameters_to_vector(
            [*learner.actor.parameters(), *learner.critic.parameters()]
        )

    data = play(env, sinking(1.0, 0.7, 0.0, steps=15)).transpose(0, 1).contiguous()
    data = data.exclude("action")
    alive = data["alive"]
    assert not alive.all()
    other, real = data.clone(), data.clone()
    other["observation"] = torch.where(alive, data["observation"], 7.0)
    real["observation"] = torch.where(alive, data["observation"] + 0.01, data["observation"])
    expected = learned(data.clone())
    assert (learned(other) == expected).all()
    assert (learned(real) != expected).any()


def test_settings_need_the_interpreter():
    with pytest.raises(ValueError, match=r"isaacgym needs env\.isaac_python=PATH"):
        HumanoidConfig(backend="isaacgym").make(2, seed=0)
    with pytest.raises(RuntimeError, match=r"isaac_python='/no/such/python' cannot be started"):
        HumanoidConfig(backend="isaacgym", isaac_python="/no/such/python").make(2, seed=0)
