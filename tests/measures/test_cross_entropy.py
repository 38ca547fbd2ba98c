import copy

import pytest
import torch
from tensordict import TensorDict
from tensordict.nn import (
    ProbabilisticTensorDictModule,
    ProbabilisticTensorDictSequential,
    TensorDictModule,
    TensorDictSequential,
)
from torch import nn
from torchrl.modules import GRUModule, ProbabilisticActor, set_recurrent_mode

from sipo_trl.archive import Archive
from sipo_trl.measures import CrossEntropyMeasure
from sipo_trl.models import build_actor
from sipo_trl.registry import build_policy

AGENTS = {
    "observations": [{"key": ["agents", "observation"], "shape": [5], "scope": "agent"}],
    "action": {"key": ["agents", "action"], "kind": "categorical", "size": 4},
    "agents": 3,
}


def categorical(*, hidden=8):
    network = nn.Sequential(nn.Linear(5, hidden), nn.Tanh(), nn.Linear(hidden, 4))
    return ProbabilisticTensorDictSequential(
        TensorDictModule(network, in_keys=["observation"], out_keys=["logits"]),
        ProbabilisticTensorDictModule(
            ["logits"], ["action"], distribution_class=torch.distributions.Categorical
        ),
    )


def perturb(policy):
    """Move a fresh policy, whose actions are all about equally likely, to some place of its own."""
    for parameter in policy.parameters():
        parameter.data += torch.randn_like(parameter)
    return policy


def one_by_one(policies, data, actions):
    """Minus the log-probabilities [*, (A,) J], without stacking anything."""
    with torch.no_grad():
        columns = [-policy.get_dist(data.copy()).log_prob(actions) for policy in policies]
    return torch.stack(columns, dim=-1)


def test_rewards_are_minus_log_probabilities():
    policies = [categorical() for _ in range(3)]
    states, actions = torch.randn(6, 7, 5), torch.randint(4, (6, 7))
    reward = CrossEntropyMeasure(policies, horizon=10).reward(states, actions)
    assert reward.shape == (6, 7, 3)
    for index, policy in enumerate(policies):
        log_probs = policy[0].module(states).log_softmax(dim=-1)
        expected = -log_probs.gather(-1, actions.unsqueeze(-1)).squeeze(-1) / 10
        torch.testing.assert_close(reward[..., index], expected.detach())


@pytest.mark.parametrize("distribution", ["tanh_normal", "normal"])
def test_continuous_actions(distribution):
    action = {"key": "action", "kind": "continuous", "size": 2, "low": [-1, -2], "high": [1, 2]}
    observations = [{"key": "observation", "shape": [5]}]
    options = {"observations": observations, "action": action, "distribution": distribution}
    policies = [perturb(build_actor(**options)) for _ in range(3)]
    states, actions = torch.randn(20, 5), torch.rand(20, 2) - 0.5
    reward = CrossEntropyMeasure(policies, maximum=1e9).reward(states, actions)
    expected = one_by_one(policies, TensorDict(observation=states, batch_size=[20]), actions)
    torch.testing.assert_close(reward, expected, rtol=1e-4, atol=1e-4)


def test_agents_are_averaged():
    policies = [perturb(build_actor(**AGENTS)) for _ in range(2)]
    states, actions = torch.randn(6, 7, 3, 5), torch.randint(4, (6, 7, 3))
    group = TensorDict(observation=states, action=actions, batch_size=[6, 7, 3])
    data = TensorDict(agents=group, batch_size=[6, 7])
    measure = CrossEntropyMeasure(policies, maximum=1e9)
    reward = measure.reward(data)
    assert reward.shape == (6, 7, 2)
    expected = one_by_one(policies, data, actions).mean(dim=-2)
    torch.testing.assert_close(reward, expected, rtol=1e-4, atol=1e-4)
    assert torch.equal(measure.reward(states, actions), reward)


@pytest.mark.parametrize("kind", ["categorical", "one_hot"])
def test_illegal_actions_are_bounded(kind):
    action = {**AGENTS["action"], "kind": kind}
    options = {**AGENTS, "action": action, "mask_key": ["agents", "action_mask"]}
    policies = [build_actor(**options) for _ in range(2)]
    mask = torch.tensor([[True, True, True, False]] * 3)
    actions = torch.tensor([0, 1, 3])  # the last agent's is illegal
    group = TensorDict(observation=torch.randn(1, 3, 5), action_mask=mask[None], batch_size=[1, 3])
    data = TensorDict(agents=group, batch_size=[1])
    taken = nn.functional.one_hot(actions, 4) if kind == "one_hot" else actions
    reward = CrossEntropyMeasure(policies, maximum=20.0).reward(data, taken[None])
    legal = 2 * torch.log(torch.tensor(3.0))  # fresh policies choose about evenly
    torch.testing.assert_close(reward, ((legal + 20) / 3).expand(1, 2), rtol=0.01, atol=0)


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_recurrent_policies_run_along_time_from_cleared_memories():
    policies = [perturb(build_actor(**AGENTS, network={"gru": 16})) for _ in range(2)]
    actions = torch.randint(4, (4, 9, 3))
    group = TensorDict(observation=torch.randn(4, 9, 3, 5), batch_size=[4, 9, 3])
    is_init = torch.rand(4, 9, 1) < 0.2
    data = TensorDict(agents=group, is_init=is_init, batch_size=[4, 9])
    measure = CrossEntropyMeasure(policies, maximum=1e9)
    (memory,) = (key for key in policies[0].in_keys if "hidden" in str(key))
    cleared = data.clone().set(memory, torch.zeros(4, 9, 3, 16))
    with set_recurrent_mode(True):
        expected = one_by_one(policies, cleared, actions).mean(dim=-2)
    reward = measure.reward(data, actions)
    torch.testing.assert_close(reward, expected, rtol=1e-4, atol=1e-4)
    # The memories in the data are the learner's, and no archived policy's.
    foreign = data.clone().set(memory, torch.randn(4, 9, 3, 16))
    assert torch.equal(measure.reward(foreign, actions), reward)
    assert foreign[memory].abs().sum() > 0


def test_recurrent_modules_of_torchrl():
    def recurrent():
        memory = GRUModule(
            input_size=5, hidden_size=6, in_key="observation", out_key="memory", python_based=True
        )
        head = TensorDictModule(nn.Linear(6, 4), in_keys=["memory"], out_keys=["logits"])
        return ProbabilisticActor(
            TensorDictSequential(memory, head),
            in_keys=["logits"],
            distribution_class=torch.distributions.Categorical,
        )

    policies = [recurrent() for _ in range(2)]
    data = TensorDict(
        observation=torch.randn(3, 8, 5), is_init=torch.rand(3, 8, 1) < 0.3, batch_size=[3, 8]
    )
    actions = torch.randint(4, (3, 8))
    with set_recurrent_mode(True):
        expected = one_by_one(policies, data, actions)
    torch.testing.assert_close(CrossEntropyMeasure(policies).reward(data, actions), expected)


def test_an_archive_gives_its_policies(tmp_path):
    policies = [perturb(build_policy({"builder": "actor", "kwargs": AGENTS})) for _ in range(2)]
    archive = Archive.create(tmp_path / "archive")
    for policy in policies:
        archive.append(torch.zeros(1, 1), policy=policy)
    states, actions = torch.randn(6, 3, 5), torch.randint(4, (6, 3))
    reward = CrossEntropyMeasure(archive).reward(states, actions)
    assert torch.equal(reward, CrossEntropyMeasure(policies).reward(states, actions))


def test_policies_are_frozen():
    policies = [categorical() for _ in range(2)]
    states, actions = torch.randn(6, 5), torch.randint(4, (6,))
    measure = CrossEntropyMeasure(policies)
    before = measure.reward(states, actions)
    assert not list(measure.parameters())
    assert not before.requires_grad
    perturb(policies[0])  # the learner goes on
    assert torch.equal(measure.reward(states, actions), before)


def test_state_dicts_and_deep_copies():
    states, actions = torch.randn(6, 5), torch.randint(4, (6,))
    one, other = (CrossEntropyMeasure([categorical(), categorical()]) for _ in range(2))
    reward = one.reward(states, actions)
    assert torch.equal(copy.deepcopy(one).reward(states, actions), reward)
    assert not torch.equal(other.reward(states, actions), reward)
    other.load_state_dict(one.state_dict())
    assert torch.equal(other.reward(states, actions), reward)


def test_meta_tensors():
    measure = CrossEntropyMeasure([categorical(), categorical()]).to("meta")
    states = torch.empty(6, 7, 5, device="meta")
    reward = measure.reward(states, torch.empty(6, 7, dtype=torch.int64, device="meta"))
    assert reward.shape == (6, 7, 2)
    assert reward.is_meta


def test_compiles_into_one_graph():
    states, actions = torch.randn(6, 5), torch.randint(4, (6,))
    measure = CrossEntropyMeasure([categorical(), categorical()])
    compiled = torch.compile(measure.reward, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(states, actions), measure.reward(states, actions))


def test_an_empty_archive_gives_empty_rewards(tmp_path):
    measure = CrossEntropyMeasure(Archive.create(tmp_path / "archive"))
    assert measure.reward(TensorDict(batch_size=[4, 5])).shape == (4, 5, 0)


def test_different_architectures_are_named():
    with pytest.raises(ValueError, match="Policy 1 has another architecture"):
        CrossEntropyMeasure([categorical(), categorical(hidden=9)])


def test_modules_without_probabilities_are_named():
    with pytest.raises(TypeError, match="Policy 0 is a Linear"):
        CrossEntropyMeasure([nn.Linear(5, 4)])


def test_policies_with_several_inputs_need_a_tensordict():
    policy = build_actor(**AGENTS, mask_key=["agents", "action_mask"])
    with pytest.raises(ValueError, match=r"The policies read .*action_mask.*pass a TensorDict"):
        CrossEntropyMeasure([policy]).reward(torch.zeros(2, 3, 5), torch.zeros(2, 3))
