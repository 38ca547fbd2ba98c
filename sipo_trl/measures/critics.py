"""The scoring functions of the Wasserstein measure, all of them as one network."""

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

CHANNELS = (16, 32, 32, 32)
LEAKY_SLOPE = 0.2


class VectorCritics(nn.Module):
    """J multilayer perceptrons with leaky ReLU, evaluated together.

    There is no output bias: it cancels in a difference of scores, so all that its optimiser would
    see is rounding noise.

    Args:
        num_critics: number J of critics.
        features: number F of features of a state.
        hidden: sizes of the hidden layers.
        bound: parameters start within this distance from zero.

    Attributes:
        width: number of activations that the widest layer has per state, all critics together.

    Example:
        >>> critics = VectorCritics(3, 2, hidden=[16], bound=0.01)
        >>> critics(torch.zeros(1, 5, 2)).shape  # the same states for all critics
        torch.Size([3, 5])
        >>> critics(torch.zeros(3, 5, 2)).shape  # to each critic its own
        torch.Size([3, 5])
    """

    def __init__(
        self, num_critics: int, features: int, *, hidden: Sequence[int], bound: float
    ) -> None:
        super().__init__()
        sizes = [features, *hidden]
        self.weights, self.biases = nn.ParameterList(), nn.ParameterList()
        for fan_in, fan_out in pairwise(sizes):
            self.weights.append(_uniform(num_critics, fan_in, fan_out, fan_in=fan_in, bound=bound))
            self.biases.append(_uniform(num_critics, 1, fan_out, fan_in=fan_in, bound=bound))
        self.output = _uniform(num_critics, sizes[-1], fan_in=sizes[-1], bound=bound)
        self.num_critics = num_critics
        self.width = num_critics * max(sizes)

    def forward(self, states: Tensor) -> Tensor:
        """Score states, [J, n, *F] or [1, n, *F], as [J, n]."""
        return torch.bmm(self.encode(states), self.output.unsqueeze(-1)).squeeze(-1)

    def total(self, states: Tensor, weights: Tensor) -> Tensor:
        """Return each critic's sum of scores, weighted by [J, n] or [1, n], as [J].

        Summing before the output layer saves a large product in the backward pass.
        """
        weights = weights.expand(self.num_critics, -1).unsqueeze(1)
        return (torch.bmm(weights, self.encode(states)).squeeze(1) * self.output).sum(dim=-1)

    def encode(self, states: Tensor) -> Tensor:
        """Return the last hidden layer's activations, [J, n, hidden]."""
        encoded = states.expand(self.num_critics, *states.shape[1:])
        for weight, bias in zip(self.weights, self.biases, strict=True):
            encoded = F.leaky_relu_(torch.baddbmm(bias, encoded, weight), LEAKY_SLOPE)
        return encoded


class ImageCritics(VectorCritics):
    """J convolutional networks, evaluated together as grouped convolutions.

    The sizes are those of the paper's visual humanoid: four convolutions (kernel 3, stride 2,
    padding 1; 16, 32, 32, 32 channels) before the hidden layers.

    Args:
        num_critics: number J of critics.
        shape: shape of an image, [C, height, width].
        hidden: sizes of the hidden layers.
        bound: parameters start within this distance from zero.

    Example:
        >>> critics = ImageCritics(3, [12, 84, 84], hidden=[256], bound=0.01)
        >>> critics(torch.zeros(1, 2, 12, 84, 84)).shape
        torch.Size([3, 2])
    """

    def __init__(
        self, num_critics: int, shape: Sequence[int], *, hidden: Sequence[int], bound: float
    ) -> None:
        size = list(shape[1:])
        pixels = []
        for _ in CHANNELS:
            size = [math.ceil(length / 2) for length in size]
            pixels.append(math.prod(size))
        super().__init__(num_critics, CHANNELS[-1] * pixels[-1], hidden=hidden, bound=bound)
        self.kernels, self.kernel_biases = nn.ParameterList(), nn.ParameterList()
        for channels, filters in pairwise((shape[0], *CHANNELS)):
            form = (num_critics, filters, channels, 3, 3)
            self.kernels.append(_uniform(*form, fan_in=9 * channels, bound=bound))
            self.kernel_biases.append(_uniform(*form[:2], fan_in=9 * channels, bound=bound))
        self.width = num_critics * CHANNELS[0] * pixels[0]

    def encode(self, states: Tensor) -> Tensor:
        """Return the last hidden layer's activations, [J, n, hidden]."""
        # Critics that look at the same images share the first layer's input: one group.
        groups = len(states)
        images = states.transpose(0, 1).flatten(1, 2)
        for kernel, bias in zip(self.kernels, self.kernel_biases, strict=True):
            images = F.conv2d(
                images, kernel.flatten(0, 1), bias.flatten(), stride=2, padding=1, groups=groups
            )
            images = F.leaky_relu_(images, LEAKY_SLOPE)
            groups = self.num_critics
        encoded = images.reshape(len(images), self.num_critics, -1).transpose(0, 1)
        return super().encode(encoded)


def _uniform(*shape: int, fan_in: int, bound: float) -> nn.Parameter:
    """Draw parameters as torch.nn.Linear does, but within the bound."""
    bound = min(bound, 1 / math.sqrt(fan_in))
    return nn.Parameter(torch.empty(shape).uniform_(-bound, bound))
