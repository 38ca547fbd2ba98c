"""The scoring functions of the Wasserstein measure, all of them as one network."""

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sipo_trl.processor import prefers_onednn

CHANNELS = (16, 32, 32, 32)
LEAKY_SLOPE = 0.2

ALL = slice(None)


class VectorCritics(nn.Module):
    """J multilayer perceptrons with leaky ReLU, evaluated together, or in groups.

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

    def total(self, states: Tensor, weights: Tensor, group: slice = ALL) -> Tensor:
        """Return some critics' sums of scores, weighted by [J, n] or [1, n], as [J].

        Summing before the output layer saves a large product.
        """
        encoded = self.encode(states, group)
        sums = torch.bmm(weights.expand(len(encoded), -1).unsqueeze(1), encoded).squeeze(1)
        return (sums * self.output[group]).sum(dim=-1)

    def encode(self, states: Tensor, group: slice = ALL) -> Tensor:
        """Return the last hidden layer's activations, [J, n, hidden]."""
        weights, biases = ([p[group] for p in some] for some in (self.weights, self.biases))
        return F.leaky_relu_(_run(self.features(states, group), weights, biases)[-1], LEAKY_SLOPE)

    def features(self, states: Tensor, group: slice) -> Tensor:
        """Return what some critics' hidden layers start from, [J, n, features]."""
        return states.expand(len(self.output[group]), *states.shape[1:])

    @torch.no_grad()
    def differentiate(
        self, pieces: Iterable[tuple[Tensor, Tensor]], group: slice, dtype: torch.dtype
    ) -> Tensor:
        """Make the gradient of :meth:`total`, summed over pieces, that of the parameters.

        The hidden layers' is found by hand: autograd would move several times as much memory.

        Args:
            pieces: states and weights, both as for :meth:`total`.
            group: the critics that are meant; the gradients of others stay what they are.
            dtype: what the hidden layers' products are computed in. Gradients are added up in the
                parameters' own.

        Returns:
            The sums [J].
        """
        for parameter in self.parameters():
            # Where it is: the first touch of new memory would take longer.
            _gradient(parameter)[group].zero_()
        weights, biases = (
            [p[group].to(dtype) for p in some] for some in (self.weights, self.biases)
        )
        # What leads from a layer back to the one before; from the last one by way of the output.
        back = [*weights[:-1], weights[-1] * self.output[group].to(dtype).unsqueeze(1)]
        gradients = [
            (_gradient(weight)[group], _gradient(bias)[group])
            for weight, bias in zip(self.weights, self.biases, strict=True)
        ]
        for states, factors in pieces:
            with torch.enable_grad():
                features = self.features(states, group)
            layers = _run(features.detach().to(dtype), weights, biases)
            gradient = _run_back(layers, factors.to(dtype).unsqueeze(-1), back, gradients)
            if features.requires_grad:
                features.backward(torch.bmm(gradient, back[0].mT).to(features.dtype))
        return self._pass_output(group, *gradients[-1])

    def _pass_output(self, group: slice, by_weight: Tensor, by_bias: Tensor) -> Tensor:
        """Bring the output into the gradients of the layer before it; return the scores' sums [J].

        Without it, a unit's parameters times their gradients are the sum of its activations, since
        leaky ReLU is linear on either side of zero; and this sum is the output's gradient.
        """
        weight, bias, output = self.weights[-1][group], self.biases[-1][group], self.output[group]
        # One critic after the other: small products stay in cache.
        products = [(w * g).sum(dim=0) for w, g in zip(weight, by_weight, strict=True)]
        totals = torch.stack(products) + (bias * by_bias).squeeze(1)
        _gradient(self.output)[group] = totals
        by_weight.mul_(output.unsqueeze(1))
        by_bias.mul_(output.unsqueeze(1))
        return (totals * output).sum(dim=-1)


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

    def features(self, states: Tensor, group: slice) -> Tensor:
        """Return what some critics' hidden layers start from, [J, n, features]."""
        critics = len(self.output[group])
        # Critics that look at the same images share the first layer's input: one group.
        groups = len(states)
        images = states.transpose(0, 1).flatten(1, 2)
        for kernel, bias in zip(self.kernels, self.kernel_biases, strict=True):
            kernel, bias = kernel[group].flatten(0, 1), bias[group].flatten()
            images = F.conv2d(images, kernel, bias, stride=2, padding=1, groups=groups)
            images = F.leaky_relu_(images, LEAKY_SLOPE)
            groups = critics
        return images.reshape(len(images), critics, -1).transpose(0, 1)


def _gradient(parameter: Tensor) -> Tensor:
    """Return a parameter's gradient, which is made if there is none."""
    if parameter.grad is None:
        parameter.grad = torch.zeros_like(parameter)
    return parameter.grad


def _run(features: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor]) -> list[Tensor]:
    """Return the inputs of all layers, and what the last one's leaky ReLU is to be applied to."""
    layers = [features, _product(features, weights[0], biases[0])]
    for weight, bias in zip(weights[1:], biases[1:], strict=True):
        layers.append(_product(F.leaky_relu_(layers[-1], LEAKY_SLOPE), weight, bias))
    return layers


def _run_back(
    layers: Sequence[Tensor],
    gradient: Tensor,
    back: Sequence[Tensor],
    gradients: Sequence[tuple[Tensor, Tensor]],
) -> Tensor:
    """Add to the gradients by weights and biases; return that before the first leaky ReLU.

    Args:
        layers: what :func:`_run` returned; overwritten.
        gradient: that by the last layer's activations, which have it in common, [J, n, 1].
        back: weights that lead from a layer to the one before.
        gradients: where to add.
    """
    for index, (by_weight, by_bias) in reversed(list(enumerate(gradients))):
        gradient = torch.ops.aten.leaky_relu_backward.grad_input(
            gradient.expand_as(layers[index + 1]),
            layers[index + 1],
            LEAKY_SLOPE,
            True,
            grad_input=layers[index + 1],
        )
        by_weight.add_(_product(layers[index].mT, gradient))
        by_bias.add_(gradient.sum(dim=1, keepdim=True))
        if index > 0:
            gradient = _product(gradient, back[index].mT)
    return gradient


def faster_alone(dtype: torch.dtype, device: torch.device) -> bool:
    """Whether large products of one critic take less time than its share of several critics' ones.

    They do where oneDNN is faster than MKL: it has no operator for several at once.
    """
    return dtype == torch.float32 and device.type == "cpu" and prefers_onednn()


def _product(left: Tensor, right: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return the products of J matrices [n, k] and [k, m], plus biases [J, 1, m]."""
    large = min(*left.shape[1:], right.shape[2]) >= 64
    # The operator has no gradient, and torch's compiler takes it for one of frozen weights.
    plain = not torch.is_grad_enabled() and not torch.compiler.is_compiling()
    if len(left) == 1 and large and plain and faster_alone(left.dtype, left.device):
        only = None if bias is None else bias[0, 0]
        product = torch.ops.mkldnn._linear_pointwise(left[0], right[0].mT, only, "none", [], "")
        return product.unsqueeze(0)
    return torch.bmm(left, right) if bias is None else torch.baddbmm(bias, left, right)


def _uniform(*shape: int, fan_in: int, bound: float) -> nn.Parameter:
    """Draw parameters as torch.nn.Linear does, but within the bound."""
    bound = min(bound, 1 / math.sqrt(fan_in))
    return nn.Parameter(torch.empty(shape).uniform_(-bound, bound))
