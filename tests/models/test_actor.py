from __future__ import annotations

import copy
import json
import pickle

import pytest
import torch
from tensordict import TensorDict
from tensordict.nn import TensorDictSequential
from torch import nn
from torchrl.collectors import Collector
from torchrl.envs import EnvBase, ExplorationType, TransformedEnv, set_exploration_type
from torchrl.envs.utils import check_env_specs
from torchrl.modules import set_recurrent_mode
from torchrl.modules.utils import get_env_transforms_from_module
from torchrl.objectives import ClipPPOLoss

from sipo_trl.models import Actor, actor_spec, build_actor, make_actor, make_critic

SMALL = {"hidden": [16]}
CONTINUOUS = {"key": "action", "kind": "continuous", "size": 2, "low": [-1, 0], "high": [1, 4]}
OBSERVATION = [{"key": "observation", "shape": [4]}]
KINDS = {
    "tanh_normal": {"action": CONTINUOUS},
    "normal": {"action": CONTINUOUS, "distribution": "normal"},
    "categorical": {"action": {"key": "action", "kind": "categorical", "size": 3}},
    "one_hot": {"action": {"key": "action", "kind": "one_hot", "size": 3}},
    "masked": {
        "action": {"key": "action", "kind": "categorical", "size": 3},
        "mask_key": "action_mask",
    },
    "masked_one_hot": {
        "action": {"key": "action", "kind": "one_hot", "size": 3},
        "mask_key": "action_mask",
    },
}


def equip(env: EnvBase, policy: nn.Module) -> EnvBase:
    return TransformedEnv(env, get_env_transforms_from_module(policy))


def head_of(actor: Actor) -> nn.Linear:
    return [layer for layer in actor.modules() if isinstance(layer, nn.Linear)][-1]


@pytest.mark.parametrize("options", [{}, {"gru": 8, "layer_norm": True}])
def test_rollouts_have_legal_actions_and_one_log_prob_per_agent(env, options):
    actor = make_actor(env, **SMALL, **options)
    rollout = equip(env, actor).rollout(6, actor, break_when_any_done=False)
    action, *_ = env.action_keys
    spec = env.full_action_spec[action]
    # TorchRL's one-hot samples are integers even where the spec is Boolean.
    assert spec.is_in(rollout[..., 0][action].to(spec.dtype))
    group = rollout if isinstance(action, str) else rollout[action[:-1]]
    assert group["action_log_prob"].shape == group.batch_size
    assert group["action_log_prob"].isfinite().all()


@pytest.mark.parametrize("options", [{}, {"gru": 8, "layer_norm": True}])
def test_json_and_weights_rebuild_the_policy(env, options):
    actor = make_actor(env, **SMALL, **options)
    nn.init.normal_(head_of(actor).weight)
    stored = json.loads(json.dumps(actor.policy_spec))
    assert stored == actor.policy_spec
    assert stored["builder"] == "actor"
    rebuilt = build_actor(**stored["kwargs"])
    rebuilt.load_state_dict(actor.state_dict())
    assert rebuilt.policy_spec == actor.policy_spec
    start = equip(env, actor).reset()
    with set_exploration_type(ExplorationType.DETERMINISTIC):
        ours, theirs = actor(start.clone()), rebuilt(start.clone())
    assert (ours == theirs).all()


def test_collected_log_probs_are_those_of_training(team_env):
    """Step mode in the collector, sequence mode in the loss, whole or in chunks."""
    env = team_env(envs=4)
    actor = make_actor(env, **SMALL, gru=8)
    nn.init.normal_(head_of(actor).weight)
    collector = Collector(equip(env, actor), actor, frames_per_batch=80, total_frames=160)
    action = ("agents", "action")
    for batch in collector:
        assert batch["is_init"].sum() == 4 * 5
        for data in (batch, batch.reshape(8, 10)):
            with set_recurrent_mode(True):
                new = actor.get_dist(data.copy()).log_prob(data[action])
            torch.testing.assert_close(new, data["agents", "action_log_prob"])
    collector.shutdown()


def test_environments_keep_their_specs_with_memory(make_env):
    env = make_env("VMAS continuous")
    policy = TensorDictSequential(
        make_actor(env, **SMALL, gru=8), make_critic(env, heads=2, **SMALL, gru=6)
    )
    check_env_specs(equip(env, policy))


def test_copies_are_equal(make_env):
    actor = make_actor(make_env("Pendulum"), **SMALL)
    for twin in (copy.deepcopy(actor), pickle.loads(pickle.dumps(actor))):
        assert twin.policy_spec == actor.policy_spec
        assert all(map(torch.equal, twin.parameters(), actor.parameters()))


def test_memory_matters(make_env):
    env = make_env("VMAS continuous")
    actor = make_actor(env, **SMALL, gru=8)
    nn.init.normal_(head_of(actor).weight)
    data = equip(env, actor).rollout(4, actor)
    forgetful = data.clone()
    forgetful["is_init"].fill_(True)
    with set_recurrent_mode(True):
        locs = [actor.get_dist(d).base_dist.mean for d in (data.clone(), forgetful)]
    torch.testing.assert_close(locs[0][:, 0], locs[1][:, 0])
    assert (locs[0][:, 1:] - locs[1][:, 1:]).abs().max() > 1e-3


def test_agents_equal_looping_over_single_agents(make_env):
    env = make_env("VMAS categorical")
    team = make_actor(env, **SMALL, gru=8, agent_id=False)
    nn.init.normal_(head_of(team).weight)
    alone = build_actor(
        observations=[{"key": "observation", "shape": [18]}],
        action={"key": "action", "kind": "categorical", "size": 9},
        network={**SMALL, "gru": 8},
    )
    alone.load_state_dict(team.state_dict())
    data = equip(env, team).rollout(8, team, break_when_any_done=False)
    with set_recurrent_mode(True):
        logits = team.get_dist(data.copy()).logits
        for agent in range(3):
            one = data["agents"][..., agent].copy().set("is_init", data["is_init"])
            torch.testing.assert_close(logits[..., agent, :], alone.get_dist(one).logits)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("gru", [None, 8])
def test_action_head_is_small_and_biases_are_zero(kind, gru):
    actor = build_actor(observations=OBSERVATION, **KINDS[kind], network={"gru": gru})
    weight = head_of(actor).weight
    torch.testing.assert_close(weight @ weight.T, 1e-4 * torch.eye(len(weight)))
    biases = [value for name, value in actor.named_parameters() if "bias" in name]
    assert biases
    assert not any(bias.any() for bias in biases)


@pytest.mark.parametrize("distribution", ["tanh_normal", "normal"])
def test_deterministic_actions_are_means_and_samples_vary(distribution):
    actor = build_actor(
        observations=OBSERVATION, action=CONTINUOUS, distribution=distribution, initial_std=0.5
    )
    data = TensorDict(observation=torch.randn(1, 4).expand(10_000, 4), batch_size=[10_000])
    with set_exploration_type(ExplorationType.DETERMINISTIC):
        out = actor(data.clone())
    loc, scale = out["loc"], out["scale"]
    torch.testing.assert_close(scale, torch.full_like(scale, 0.5))
    squashed = 2 * torch.tanh(loc[:, 1]) + 2
    expected = torch.stack([torch.tanh(loc[:, 0]), squashed], dim=-1)
    torch.testing.assert_close(out["action"], loc if distribution == "normal" else expected)
    samples = actor(data.clone())["action"]
    # The tanh shrinks a standard deviation of 0.5 to about 0.43.
    spread = samples.std(0) / torch.tensor([1.0, 1.0 if distribution == "normal" else 2.0])
    assert ((spread > 0.4) & (spread < 0.52)).all()


@pytest.mark.parametrize("kind", ["categorical", "one_hot", "masked", "masked_one_hot"])
def test_deterministic_choices_are_the_most_likely_legal_ones(kind):
    actor = build_actor(observations=OBSERVATION, **KINDS[kind])
    nn.init.normal_(head_of(actor).weight)
    mask = torch.rand(200, 3) < 0.7
    mask[:, 0] |= ~mask.any(-1)
    data = TensorDict(observation=torch.randn(200, 4), action_mask=mask, batch_size=[200])
    with set_exploration_type(ExplorationType.DETERMINISTIC):
        out = actor(data)
    legal = mask if "masked" in kind else torch.ones_like(mask)
    best = out["logits"].masked_fill(~legal, -torch.inf).argmax(-1)
    action = out["action"].argmax(-1) if "one_hot" in kind else out["action"]
    assert (action == best).all()


@pytest.mark.parametrize("kind", ["one_hot", "masked_one_hot"])
def test_deterministic_one_hot_actions_are_one_hot_even_at_ties(kind):
    actor = build_actor(observations=OBSERVATION, **KINDS[kind])
    mask = torch.tensor([[True, True, True], [False, True, True]])
    data = TensorDict(observation=torch.zeros(2, 4), action_mask=mask, batch_size=[2])
    with set_exploration_type(ExplorationType.DETERMINISTIC):
        action = actor(data)["action"]
    second = [0, 1, 0] if kind == "masked_one_hot" else [1, 0, 0]
    assert action.tolist() == [[1, 0, 0], second]


@pytest.mark.parametrize("kind", ["masked", "masked_one_hot"])
def test_masked_choices_are_never_sampled_and_the_rest_is_renormalised(kind):
    actor = build_actor(observations=OBSERVATION, **KINDS[kind])
    data = TensorDict(
        observation=torch.zeros(20_000, 4),
        action_mask=torch.tensor([True, False, True]).expand(20_000, 3),
        batch_size=[20_000],
    )
    actor(data)
    action = data["action"].argmax(-1) if kind == "masked_one_hot" else data["action"]
    counts = action.bincount(minlength=3)
    assert counts[1] == 0
    assert abs(counts[0] / 20_000 - 0.5) < 0.02
    torch.testing.assert_close(data["action_log_prob"].exp(), torch.full((20_000,), 0.5))


def test_teams_take_legal_actions_only(team_env):
    env = team_env(envs=32)
    data = env.rollout(20, make_actor(env, **SMALL), break_when_any_done=False)["agents"]
    assert data["action_mask"].gather(-1, data["action"].unsqueeze(-1)).all()


def test_a_row_without_legal_choices_gives_no_nan():
    actor = build_actor(observations=OBSERVATION, **KINDS["masked"])
    mask = torch.tensor([[True, False, True], [False, False, False]])
    data = TensorDict(observation=torch.zeros(2, 4), action_mask=mask, batch_size=[2])
    log_prob = actor(data)["action_log_prob"]
    (log_prob.sum() + actor.get_dist(data).entropy().sum()).backward()
    assert log_prob.isfinite().all()
    assert all(p.grad.isfinite().all() for p in actor.parameters())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("activation", ["tanh", "relu", "elu"])
def test_large_inputs_give_no_nan(kind, activation):
    network = {"activation": activation}
    actor = build_actor(observations=OBSERVATION, **KINDS[kind], network=network)
    nn.init.normal_(head_of(actor).weight)
    data = TensorDict(
        observation=1e20 * torch.randn(100, 4),
        action_mask=torch.ones(100, 3, dtype=torch.bool),
        batch_size=[100],
    )
    out = actor(data)
    out["action_log_prob"].sum().backward()
    assert out["action_log_prob"].isfinite().all()
    assert all(p.grad.isfinite().all() for p in actor.parameters())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("recurrent", [False, True])
def test_meta_tensors(kind, recurrent):
    network = {**SMALL, "gru": 8}
    actor = build_actor(observations=OBSERVATION, **KINDS[kind], network=network, device="meta")
    data = TensorDict(
        observation=torch.zeros(4, 6, 4),
        action_mask=torch.ones(4, 6, 3, dtype=torch.bool),
        actor_hidden=torch.zeros(4, 6, 8),
        is_init=torch.zeros(4, 6, 1, dtype=torch.bool),
        batch_size=[4, 6],
    ).to("meta")
    with set_recurrent_mode(recurrent):
        assert actor(data)["action_log_prob"].shape == (4, 6)
        assert actor.get_dist(data).log_prob(data["action"]).is_meta


@pytest.mark.parametrize("kind", KINDS)
def test_double_precision(kind):
    actor = build_actor(observations=OBSERVATION, **KINDS[kind], network={"gru": 8}).double()
    data = TensorDict(
        observation=torch.zeros(4, 4),
        action_mask=torch.ones(4, 3, dtype=torch.bool),
        actor_hidden=torch.zeros(4, 8),
        is_init=torch.zeros(4, 1, dtype=torch.bool),
        batch_size=[4],
    )
    assert actor(data)["action_log_prob"].dtype == torch.float64


@pytest.mark.parametrize("gru", [None, 8])
def test_trains_in_torchrls_own_loss(team_env, gru):
    env = team_env()
    actor, critic = make_actor(env, **SMALL, gru=gru), make_critic(env, heads=1, **SMALL)
    with torch.no_grad():
        data = equip(env, actor).rollout(8, actor, break_when_any_done=False)
    data["agents", "advantage"] = torch.randn(2, 8, 3, 1)
    data["agents", "value_target"] = torch.randn(2, 8, 3, 1)
    loss = ClipPPOLoss(actor, critic, normalize_advantage=False)
    group = {name: ("agents", name) for name in ("advantage", "value_target", "action")}
    loss.set_keys(
        value=("agents", "state_value"), sample_log_prob=("agents", "action_log_prob"), **group
    )
    out = loss(data)
    torch.testing.assert_close(out["kl_approx"], torch.tensor(0.0), atol=1e-6, rtol=0)
    (out["loss_objective"] + out["loss_critic"] + out["loss_entropy"]).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in loss.parameters())


def test_images_and_custom_keys(make_env):
    env = make_env("mock pixels")
    spec = actor_spec(env, observation_keys=["pixels"], hidden=[])
    assert spec["observations"] == [{"key": "pixels", "shape": [1, 7, 7], "scope": "root"}]
    actor = build_actor(**spec)
    assert [key for key in actor.in_keys if key != "is_init"] == ["pixels"]


def test_tanh_without_bounds_says_what_to_do():
    action = {"key": "action", "kind": "continuous", "size": 2}
    with pytest.raises(ValueError, match=r"no bounds.*distribution='normal'"):
        build_actor(observations=OBSERVATION, action=action)


def test_unknown_distributions_are_named():
    with pytest.raises(ValueError, match="distribution is 'beta'; choose one of"):
        build_actor(observations=OBSERVATION, action=CONTINUOUS, distribution="beta")


def test_unknown_options_are_named(make_env):
    with pytest.raises(TypeError, match="widths"):
        make_actor(make_env("Pendulum"), widths=[3])
