"""The convolutional image encoder that policies and the Wasserstein critic share."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import nn

from sipo_trl.models.initialization import HIDDEN_GAIN, orthogonal

CHANNELS = (16, 32, 32, 32)
LEAKY_SLOPE = 0.2


class ConvEncoder(nn.Module):
    """Turn images into feature vectors: four strided convolutions and one hidden layer.

    The sizes are those of the paper's image-based Wasserstein critic (kernel 3, stride 2,
    padding 1; 16, 32, 32, 32 channels; leaky ReLU with slope 0.2).

    Args:
        shape: shape of one image, ``[C, H, W]``.
        features: size of the hidden layer, hence of the output.

    Shapes:
        ``[*, C, H, W]`` to ``[*, features]``; integer images are taken as 0 to 255 and scaled to
        0 to 1, floating ones are taken as they are.

    Example:
        >>> encoder = ConvEncoder([3, 84, 84])
        >>> encoder(torch.zeros(2, 5, 3, 84, 84, dtype=torch.uint8)).shape
        torch.Size([2, 5, 256])
    """

    def __init__(self, shape: Sequence[int], *, features: int = 256) -> None:
        super().__init__()
        channels, *size = shape
        layers: list[nn.Module] = []
        for out_channels in CHANNELS:
            conv = nn.Conv2d(channels, out_channels, kernel_size=3, stride=2, padding=1)
            layers += [orthogonal(conv, gain=HIDDEN_GAIN), nn.LeakyReLU(LEAKY_SLOPE)]
            channels = out_channels
            size = [math.ceil(length / 2) for length in size]
        self.convolutions = nn.Sequential(*layers, nn.Flatten())
        flat = channels * math.prod(size)
        self.hidden = orthogonal(nn.Linear(flat, features), gain=HIDDEN_GAIN)
        self.out_features = features

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Encode images ``[*, C, H, W]`` into features ``[*, features]``."""
        pixels = images.to(self.hidden.weight.dtype)
        if not images.is_floating_point():
            pixels = pixels / 255
        encoded = self.hidden(self.convolutions(pixels.reshape(-1, *images.shape[-3:])))
        features = nn.functional.leaky_relu(encoded, LEAKY_SLOPE)
        return features.reshape(*images.shape[:-3], self.out_features)
