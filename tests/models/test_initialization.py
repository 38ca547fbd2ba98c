from __future__ import annotations

import pytest
import torch
from torch import nn

from sipo_trl.models import orthogonal


@pytest.mark.parametrize("gain", [0.01, 1.0, 2**0.5])
@pytest.mark.parametrize(("rows", "columns"), [(3, 9), (9, 3), (6, 6)])
def test_weights_have_one_singular_value_and_biases_are_zero(gain, rows, columns):
    layer = orthogonal(nn.Linear(columns, rows), gain=gain)
    singular = torch.linalg.svdvals(layer.weight)
    torch.testing.assert_close(singular, torch.full_like(singular, gain))
    assert not layer.bias.any()


def test_convolution_filters_are_orthogonal():
    layer = orthogonal(nn.Conv2d(3, 16, 3), gain=2**0.5)
    filters = layer.weight.flatten(1)
    torch.testing.assert_close(filters @ filters.T, 2 * torch.eye(16))
    assert not layer.bias.any()
