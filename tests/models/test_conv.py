from __future__ import annotations

import pytest
import torch
from torch import nn

from sipo_trl.models import ConvEncoder


def test_layers_are_those_of_the_paper():
    encoder = ConvEncoder([12, 84, 84])
    convolutions = [layer for layer in encoder.modules() if isinstance(layer, nn.Conv2d)]
    assert [layer.out_channels for layer in convolutions] == [16, 32, 32, 32]
    for layer in convolutions:
        assert (layer.kernel_size, layer.stride, layer.padding) == ((3, 3), (2, 2), (1, 1))
        filters = layer.weight.flatten(1)
        torch.testing.assert_close(filters @ filters.T, 2 * torch.eye(len(filters)))
    # 84 halves four times to 6.
    assert encoder.hidden.weight.shape == (256, 32 * 6 * 6)


@pytest.mark.parametrize("size", [(84, 84), (7, 12), (1, 1)])
@pytest.mark.parametrize("batch", [(), (2,), (2, 3, 4)])
def test_any_batch_and_image_size(size, batch):
    assert ConvEncoder([3, *size], features=8)(torch.rand(*batch, 3, *size)).shape == (*batch, 8)


def test_bytes_are_scaled_to_the_unit_interval():
    encoder = ConvEncoder([3, 20, 20], features=8)
    pixels = torch.randint(0, 256, (4, 3, 20, 20), dtype=torch.uint8)
    torch.testing.assert_close(encoder(pixels), encoder(pixels.float() / 255))


def test_images_do_not_see_each_other():
    encoder = ConvEncoder([3, 20, 20], features=8)
    images = torch.rand(2, 3, 3, 20, 20)
    one_by_one = torch.stack([torch.stack([encoder(image) for image in row]) for row in images])
    torch.testing.assert_close(encoder(images), one_by_one)


def test_negative_features_leak():
    encoder = ConvEncoder([1, 8, 8], features=64)
    before = encoder.hidden(encoder.convolutions(torch.ones(1, 1, 8, 8)))
    expected = torch.where(before > 0, before, 0.2 * before)
    assert (before < 0).any()
    torch.testing.assert_close(encoder(torch.ones(1, 1, 8, 8)), expected)
