"""A policy's network without torch, for workers that decide by themselves.

One step of a few agents is so little work that torch would need most of its time to get ready for
it, and every worker two seconds to load it.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

Layer = Sequence[str | int]
"""The name of a layer and its sizes, as JSON can hold them."""

SHAPES: dict[str, Callable[..., list[tuple[int, ...]]]] = {
    "observation_norm": lambda size: [(size,)] * 2,
    "layer_norm": lambda size: [(size,)] * 2,
    "agent_id": lambda agents: [],
    "linear": lambda inputs, outputs: [(outputs, inputs), (outputs,)],
    **dict.fromkeys(("relu", "elu", "tanh"), list),
    "gru": lambda inputs, size: [(3 * size, inputs), (3 * size, size), (3 * size,), (3 * size,)],
}
"""Shapes of each kind of layer's weights, in the order of torch's own.

A ``layer_norm`` or an ``agent_id``, or one after the other, is followed by a product.
"""


def weight_count(layers: Sequence[Layer]) -> int:
    """How many numbers the layers have learned.

    Examples:
        >>> weight_count([["linear", 3, 2], ["relu"], ["gru", 2, 4]])
        104
    """
    return sum(math.prod(shape) for layer in layers for shape in _shapes(layer))


def memory_size(layers: Sequence[Layer]) -> int:
    """How many numbers an agent remembers from one step to the next.

    Examples:
        >>> memory_size([["gru", 2, 4], ["linear", 4, 1]]), memory_size([["linear", 4, 1]])
        (4, 0)
    """
    return sum(int(layer[2]) for layer in layers if layer[0] == "gru")


class PlainNetwork:
    """A network that decides for A agents, one step at a time.

    Nearly all of its time goes into calling numpy, so it calls numpy as rarely as it can: what
    normalises features or tells agents apart becomes part of the product that follows.

    Args:
        layers: what there is, from the observation to the result.
        weights: those of all layers, one after another [P].

    Examples:
        >>> network = PlainNetwork([["linear", 1, 1], ["relu"]], np.array([2.0, 0.5]))
        >>> network(np.array([[3.0], [-3.0]]), np.zeros((2, 0)))[0].tolist()
        [[6.5], [0.0]]
    """

    def __init__(self, layers: Sequence[Layer], weights: np.ndarray) -> None:
        self._layers: list[Callable[..., np.ndarray]] = []
        norm, agents, start = None, 0, 0
        for layer in layers:
            name, parts = str(layer[0]), []
            for shape in _shapes(layer):
                stop = start + math.prod(shape)
                parts.append(weights[start:stop].reshape(shape))
                start = stop
            if name == "layer_norm":
                norm = parts
            elif name == "agent_id":
                agents = int(layer[1])
            elif name in ("linear", "gru"):
                kind = _Memory if name == "gru" else _Product
                self._layers.append(kind(*parts, norm=norm, agents=agents))
                norm, agents = None, 0
            elif name == "observation_norm":
                self._layers.append(_observation_norm(*parts))
            else:
                self._layers.append(ACTIVATIONS[name])

    def __call__(self, features: np.ndarray, memory: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What follows from observations [A, F] and what is remembered [A, H], and both anew."""
        for layer in self._layers:
            if isinstance(layer, _Memory):
                features = memory = layer(features, memory)
            else:
                features = layer(features)
        return features, memory


class _Product:
    """A linear layer, with what normalises features and tells agents apart before it.

    To normalise is to centre, to divide by the deviation, to scale and to shift: all but the
    division can be done to the weights. An agent's id adds a row of them to its bias.
    """

    def __init__(
        self,
        weight: np.ndarray,
        bias: np.ndarray,
        *,
        norm: Sequence[np.ndarray] | None,
        agents: int,
    ) -> None:
        known, ids = np.split(weight, [weight.shape[1] - agents], axis=1)
        self.weight, self.bias = np.ascontiguousarray(known.T), bias + ids.T if agents else bias
        self.normalizes = norm is not None
        self.share = np.full((known.shape[1], 1), 1 / known.shape[1], known.dtype)
        if norm is not None:
            scale, shift = norm
            scaled = known * scale
            self.weight = np.ascontiguousarray((scaled - scaled.mean(1, keepdims=True)).T)
            self.bias = self.bias + known @ shift

    def __call__(self, features: np.ndarray) -> np.ndarray:
        # Numpy's dot takes less time than its matmul, and much less than its mean or einsum.
        result = features.dot(self.weight)
        if self.normalizes:
            mean = features.dot(self.share)
            variance = (features * features).dot(self.share)
            variance -= mean * mean
            np.maximum(variance, 0, out=variance)  # but for rounding it is
            variance += 1e-5
            result /= np.sqrt(variance)
        result += self.bias
        return result


class _Memory:
    """A cell of gated recurrent units, as torch defines it.

    A sigmoid of x is half of one and the tangent of x / 2; the halves go into the weights.
    """

    def __init__(
        self,
        input_weight: np.ndarray,
        memory_weight: np.ndarray,
        input_bias: np.ndarray,
        memory_bias: np.ndarray,
        *,
        norm: Sequence[np.ndarray] | None,
        agents: int,
    ) -> None:
        size = memory_weight.shape[1]
        self.gates, self.new = slice(0, 2 * size), slice(2 * size, 3 * size)
        self.reset, self.update = slice(0, size), slice(size, 2 * size)
        half_gates = np.repeat(np.array([0.5, 0.5, 1], input_weight.dtype), size)
        halved = input_weight * half_gates[:, None], input_bias * half_gates
        self.seen = _Product(*halved, norm=norm, agents=agents)
        self.remembered = _Product(memory_weight * 0.5, memory_bias * 0.5, norm=None, agents=0)

    def __call__(self, features: np.ndarray, memory: np.ndarray) -> np.ndarray:
        seen, remembered = self.seen(features), self.remembered(memory)
        gates = seen[:, self.gates]
        gates += remembered[:, self.gates]
        np.tanh(gates, out=gates)
        gates += 1
        new = remembered[:, self.new]
        new *= gates[:, self.reset]
        new += seen[:, self.new]
        np.tanh(new, out=new)
        kept = memory - new
        kept *= gates[:, self.update]
        kept *= 0.5
        kept += new
        return kept


def _observation_norm(
    mean: np.ndarray, deviation: np.ndarray
) -> Callable[[np.ndarray], np.ndarray]:
    def normalize(features: np.ndarray) -> np.ndarray:
        result = features - mean
        result /= deviation
        return np.clip(result, -10, 10, out=result)

    return normalize


def _elu(features: np.ndarray) -> np.ndarray:
    return np.where(features > 0, features, np.expm1(np.minimum(features, 0)))


def _relu(features: np.ndarray) -> np.ndarray:
    return np.maximum(features, 0, out=features)


ACTIVATIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "relu": _relu,
    "elu": _elu,
    "tanh": np.tanh,
}


def _shapes(layer: Layer) -> list[tuple[int, ...]]:
    name, *sizes = layer
    return SHAPES[str(name)](*sizes)
