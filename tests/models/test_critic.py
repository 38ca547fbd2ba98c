from __future__ import annotations

import json

import pytest
import torch
from tensordict.nn import TensorDictSequential
from torch import nn
from torchrl.collectors import Collector
from torchrl.envs import StepCounter, TransformedEnv
from torchrl.modules import set_recurrent_mode
from torchrl.modules.utils import get_env_transforms_from_module

from sipo_trl.models import build_critic, critic_spec, make_actor, make_critic

SMALL = {"hidden": [16]}


@pytest.mark.parametrize("options", [{}, {"gru": 8, "layer_norm": True}])
@pytest.mark.parametrize("heads", [1, 4])
def test_values_have_one_entry_per_head(env, options, heads):
    critic = make_critic(env, heads=heads, **SMALL, **options)
    data = TransformedEnv(env, get_env_transforms_from_module(critic)).rollout(3)
    with set_recurrent_mode(True):
        critic(data)
    action, *_ = env.action_keys
    group = data if isinstance(action, str) else data[action[:-1]]
    assert group["state_value"].shape == (*group.batch_size, heads)


def test_description_survives_json(env):
    spec = critic_spec(env, heads=3, **SMALL, gru=8)
    assert json.loads(json.dumps(spec)) == spec
    first, second = build_critic(**spec), build_critic(**spec)
    second.load_state_dict(first.state_dict())
    start = TransformedEnv(env, get_env_transforms_from_module(first)).reset()
    assert (first(start.clone()) == second(start.clone())).all()


@pytest.mark.parametrize("gru", [None, 8])
def test_value_head_starts_near_zero(gru, make_env):
    critic = make_critic(make_env("VMAS continuous"), heads=4, gru=gru)
    head = [layer for layer in critic.modules() if isinstance(layer, nn.Linear)][-1]
    torch.testing.assert_close(head.weight @ head.weight.T, 0.01**2 * torch.eye(4))
    assert not head.bias.any()


def test_global_state_is_preferred_and_broadcast(team_env):
    critic = make_critic(team_env(), heads=2, **SMALL)
    assert critic.in_keys == ["state"]
    values = critic(team_env().reset())["agents", "state_value"]
    # The agents share the state but not the id.
    assert (values[:, 0] != values[:, 1]).all()
    same = make_critic(team_env(), heads=2, **SMALL, agent_id=False)
    values = same(team_env().reset())["agents", "state_value"]
    torch.testing.assert_close(values[:, 0], values[:, 1])


@pytest.mark.parametrize(
    ("options", "sees_others"),
    [({}, True), ({"observation_keys": [("agents", "observation")]}, False)],
)
def test_without_state_the_observations_are_joined_unless_named(team_env, options, sees_others):
    env = team_env(state=False)
    critic = make_critic(env, heads=2, **SMALL, **options)
    data = env.reset()
    other = data.clone()
    other["agents", "observation"][:, 2] += 1
    values, changed = (critic(d)["agents", "state_value"] for d in (data, other))
    assert (values[:, 2] != changed[:, 2]).all()
    assert (values[:, :2] != changed[:, :2]).all() == sees_others


def test_two_calls_value_a_batch_and_its_successors(team_env):
    """The documented convention, against replaying every episode by itself, step by step."""
    env = team_env(envs=4)
    actor = make_actor(env, **SMALL, gru=8)
    critic = make_critic(env, heads=3, **SMALL, gru=6)
    policy = TensorDictSequential(actor, critic)
    equipped = TransformedEnv(env, get_env_transforms_from_module(policy))
    key = ("agents", "state_value")
    # 10 steps in episodes of 4: the second batch starts amid an episode.
    collector = Collector(equipped, policy, frames_per_batch=40, total_frames=80)
    memory = torch.zeros(4, 3, 6)
    for data in collector:
        data = data.clone()
        with set_recurrent_mode(True):
            values = critic(data.copy())[key]
        with set_recurrent_mode(False):
            next_values = critic(data["next"].copy())[key]
        torch.testing.assert_close(values, data[key])
        for step in range(10):
            now = data[:, step].select("state", "is_init")
            memory = memory * ~now["is_init"].unsqueeze(-1)
            now = critic(now.set(("agents", "critic_hidden"), memory))
            torch.testing.assert_close(values[:, step], now[key])
            memory = now["next", "agents", "critic_hidden"]
            after = data[:, step]["next"].select("state", "is_init")
            after = critic(after.set(("agents", "critic_hidden"), memory))
            torch.testing.assert_close(next_values[:, step], after[key])
    collector.shutdown()


def test_meta_tensors(team_env):
    critic = make_critic(team_env(), heads=3, gru=8, device="meta")
    env = TransformedEnv(team_env(), get_env_transforms_from_module(critic))
    data = env.rollout(5).to("meta")
    for recurrent in (False, True):
        with set_recurrent_mode(recurrent):
            assert critic(data.copy())["agents", "state_value"].shape == (2, 4, 3, 3)


def test_step_counters_do_not_disturb(make_env):
    env = TransformedEnv(make_env("Pendulum"), StepCounter())
    assert make_critic(env, heads=1).in_keys == ["observation"]
