from __future__ import annotations

import pytest
import torch
from torch import nn

from sipo_trl.models import Network, Observation
from sipo_trl.models.layers import Tanh
from sipo_trl.models.trunk import Trunk

OWN = Observation(key=("agents", "observation"), shape=[5], scope="agent")
JOINT = Observation(key=("agents", "observation"), shape=[5], scope="joint")
STATE = Observation(key="state", shape=[7])


@pytest.mark.parametrize("layer_norm", [False, True])
@pytest.mark.parametrize("activation", ["tanh", "relu", "elu"])
def test_hidden_layers_are_orthogonal_with_gain_sqrt_2(layer_norm, activation):
    network = Network(hidden=[32, 16], activation=activation, layer_norm=layer_norm)
    trunk = Trunk([STATE], agents=None, network=network)
    layers = [layer for layer in trunk.modules() if isinstance(layer, nn.Linear)]
    assert [layer.out_features for layer in layers] == [32, 16]
    for layer in layers:
        singular = torch.linalg.svdvals(layer.weight)
        torch.testing.assert_close(singular, torch.full_like(singular, 2**0.5))
        assert not layer.bias.any()


def test_layer_norm_follows_the_input_and_every_activation():
    network = Network(hidden=[32, 16], layer_norm=True)
    trunk = Trunk([STATE], agents=None, network=network)
    x = 100 * torch.randn(20, 7)
    first, _, second, *_ = [m for m in trunk.layers if not isinstance(m, Tanh)]
    norm = nn.functional.layer_norm
    h = norm(torch.tanh(first(norm(x, [7]))), [32])
    h = norm(torch.tanh(second(h)), [16])
    torch.testing.assert_close(trunk(x), h)


@pytest.mark.parametrize("batch", [(), (4,), (2, 4)])
def test_each_agent_sees_its_share_and_its_id(batch):
    trunk = Trunk([OWN, JOINT, STATE], agents=3, network=Network(hidden=[8]))
    own, state = torch.randn(*batch, 3, 5), torch.randn(*batch, 7)
    features = trunk(own, own, state)
    for agent in range(3):
        ids = torch.eye(3)[agent].expand(*batch, 3)
        seen = torch.cat([own[..., agent, :], own.flatten(-2), state, ids], dim=-1)
        torch.testing.assert_close(features[..., agent, :], trunk.layers(seen))


def test_without_ids_agents_are_exchangeable():
    trunk = Trunk([OWN], agents=3, network=Network(agent_id=False))
    own = torch.randn(4, 3, 5)
    torch.testing.assert_close(trunk(own.flip(1)), trunk(own).flip(1))


def test_ids_are_not_normalised():
    trunk = Trunk([STATE], agents=3, network=Network(hidden=[8], layer_norm=True))
    features = trunk(1e6 * torch.randn(4, 7))
    assert (features[:, 0] - features[:, 1]).abs().max() > 0.1


def test_images_join_vectors():
    image = Observation(key="pixels", shape=[3, 20, 20])
    trunk = Trunk([image, STATE], agents=None, network=Network(hidden=[]))
    features = trunk(torch.zeros(4, 3, 20, 20, dtype=torch.uint8), torch.ones(4, 7))
    assert features.shape == (4, 256 + 7)
    torch.testing.assert_close(features[:, 256:], torch.ones(4, 7))


def test_dtype_follows_the_parameters():
    trunk = Trunk([STATE], agents=None, network=Network()).double()
    assert trunk(torch.zeros(4, 7)).dtype == torch.float64


def test_agent_observations_need_agents():
    with pytest.raises(ValueError, match="agents is None"):
        Trunk([OWN], agents=None, network=Network())


def test_ids_are_not_weights():
    trunk = Trunk([OWN], agents=3, network=Network())
    assert not any("agent_id" in name for name in trunk.state_dict())
