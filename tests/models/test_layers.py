"""The layers give what torch's own give, forwards and backwards."""

import pytest
import torch
from torch import nn

from sipo_trl.models.layers import Linear, Tanh


@pytest.mark.parametrize("features", [10, 70])
@pytest.mark.parametrize("batch", [(), (4,), (2, 0), (2, 4)])
def test_linear_is_torchs_own(batch, features):
    theirs, ours = nn.Linear(features, 6).double(), Linear(features, 6).double()
    ours.load_state_dict(theirs.state_dict())
    x = torch.randn(*batch, features, dtype=torch.float64, requires_grad=True)
    results = []
    for layer in (theirs, ours):
        y = layer(x)
        y.square().sum().backward()
        results.append((y, x.grad, layer.weight.grad, layer.bias.grad))
        x.grad = None
    torch.testing.assert_close(*results)


def test_tanh_is_the_tangent_to_the_last_digits():
    x = torch.linspace(-20, 20, 100_001)
    torch.testing.assert_close(Tanh()(x), x.double().tanh().float(), rtol=0, atol=2e-7)


def test_layers_can_be_mapped():
    x = torch.randn(3, 5, 10)
    layers = nn.Sequential(Linear(10, 6), Tanh())
    torch.testing.assert_close(torch.vmap(layers)(x), layers(x))


def test_tanh_has_the_tangents_gradient():
    x = torch.randn(50, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(Tanh(), x)
