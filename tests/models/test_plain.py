"""A policy as plain numbers decides as it does in torch."""

import pytest
import torch
from tensordict import TensorDict

from sipo_trl.envs.workers.network import PlainNetwork, memory_size, weight_count
from sipo_trl.models import build_actor, plain_layers, plain_weights, update_norms

AGENTS, FEATURES, CHOICES = 3, 7, 5
ACTION = {"key": ["agents", "action"], "kind": "categorical", "size": CHOICES}
SEEN = {"key": ["agents", "observation"], "shape": [FEATURES], "scope": "agent"}


def make(**network):
    return build_actor(observations=[SEEN], action=ACTION, agents=AGENTS, network=network)


def data(memory):
    torch.manual_seed(1)
    observation = 2 + 3 * torch.randn(1, AGENTS, FEATURES)
    hidden = torch.randn(1, AGENTS, memory).clamp(-1, 1)
    team = TensorDict({"observation": observation, "actor_hidden": hidden}, [1, AGENTS])
    return TensorDict({"agents": team, "is_init": torch.zeros(1, 1, dtype=torch.bool)}, [1])


@pytest.mark.parametrize("activation", ["relu", "elu", "tanh"])
@pytest.mark.parametrize("gru", [None, 6])
@pytest.mark.parametrize(
    "options", [{}, {"layer_norm": True}, {"observation_norm": True}, {"agent_id": False}]
)
def test_scores_and_memory_are_those_of_torch(activation, gru, options) -> None:
    actor = make(hidden=[8, 9], activation=activation, gru=gru, **options)
    with torch.no_grad():  # fresh ones would leave out shifts, and scores would be next to nothing
        for parameter in actor.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
    seen = data(gru or 0)
    update_norms(actor, TensorDict(agents=TensorDict(observation=torch.randn(9, 3, FEATURES))))
    layers = plain_layers(actor)
    weights = plain_weights(actor)
    assert weights.shape == (weight_count(layers),)
    assert memory_size(layers) == (gru or 0)
    network = PlainNetwork(layers, weights.numpy())
    before = seen["agents", "observation"].clone()
    scores, memory = network(
        seen["agents", "observation"][0].numpy(), seen["agents", "actor_hidden"][0].numpy()
    )
    assert torch.equal(seen["agents", "observation"], before)
    with torch.no_grad():
        expected = actor[0](seen)
    assert torch.from_numpy(scores).allclose(expected["agents", "logits"][0], atol=1e-5)
    assert expected["agents", "logits"].std() > 0.1
    if gru:
        after = expected["next", "agents", "actor_hidden"][0]
        assert torch.from_numpy(memory).allclose(after, atol=1e-5)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"action": {"key": "action", "kind": "continuous", "size": 2}}, "GaussianHead"),
        ({"observations": [{"key": "pixels", "shape": [3, 84, 84]}]}, "Conv2d"),
        ({"mask_key": "mask"}, "mask"),
        ({"observations": [{"key": k, "shape": [2]} for k in "ab"]}, "several observations"),
    ],
)
def test_what_workers_cannot_run_is_named(options, what) -> None:
    defaults = {
        "observations": [{"key": "observation", "shape": [4]}],
        "action": {"key": "action", "kind": "categorical", "size": 2},
        "distribution": "normal",
    }
    with pytest.raises(ValueError, match=f"{what}.*decide_in_workers=false"):
        plain_layers(build_actor(**{**defaults, **options}))
