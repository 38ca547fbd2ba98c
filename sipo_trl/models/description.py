"""What defines a network, as plain data.

An archive stores these descriptions as JSON and rebuilds policies from them, so that reading one
never runs code that it contains.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from tensordict import NestedKey
from tensordict.utils import unravel_key

Scope = Literal["root", "agent", "joint"]
Kind = Literal["continuous", "categorical", "one_hot"]
Activation = Literal["tanh", "relu", "elu"]


@dataclass(kw_only=True)
class Observation:
    """One input of a network.

    Attributes:
        key: where it stands in the TensorDict.
        shape: its shape without batch and agent dimensions: ``[F]`` or, for images, ``[C, H, W]``.
        scope: who sees what. ``"root"``: one tensor ``[*, *shape]``, the same for all agents;
            ``"agent"``: ``[*, A, *shape]``, to each agent its own; ``"joint"``:
            ``[*, A, *shape]``, to each agent those of all agents.
    """

    key: NestedKey
    shape: Sequence[int]
    scope: Scope = "root"

    def __post_init__(self) -> None:
        self.key, self.shape = as_key(self.key), list(self.shape)
        check_choice("scope", self.scope, Scope)
        if len(self.shape) not in (1, 3):
            raise ValueError(
                f"Observation {self.key!r} has shape {self.shape}, but [features] or "
                "[channels, height, width] is needed: reshape it in the environment, for example "
                "with FlattenObservation or UnsqueezeTransform."
            )


@dataclass(kw_only=True)
class Action:
    """What a policy decides.

    Attributes:
        key: where the action stands in the TensorDict.
        kind: ``"continuous"`` ``[*, size]``, ``"categorical"`` ``[*]`` or ``"one_hot"``
            ``[*, size]``; with agents, ``*`` ends with their dimension.
        size: number of components of a continuous action, or number of choices.
        low: lowest continuous action, ``[size]`` or ``[A, size]``; ``None`` if unbounded.
        high: highest continuous action, in the same way.
    """

    key: NestedKey
    kind: Kind
    size: int
    low: Sequence[Any] | None = None
    high: Sequence[Any] | None = None

    def __post_init__(self) -> None:
        self.key = as_key(self.key)
        check_choice("kind", self.kind, Kind)

    @property
    def group(self) -> tuple[str, ...]:
        """The path of the agents' group; empty if the action stands at the root."""
        return () if isinstance(self.key, str) else self.key[:-1]


@dataclass(kw_only=True)
class Network:
    """The options that actors and critics have in common.

    Attributes:
        hidden: sizes of the hidden layers; may be empty where images are encoded anyway.
        activation: what follows each hidden layer.
        layer_norm: whether to normalise the input features and what follows each hidden layer and
            the GRU, as MAPPO does.
        observation_norm: whether to normalise the input features by their running mean and
            deviation instead; they move with :func:`~sipo_trl.models.update_norms` only.
        gru: size of the GRU after the hidden layers (the paper: 64 in multi-agent domains);
            ``None`` for a network without memory.
        agent_id: whether each agent's input ends with its one-hot index, so that agents that share
            parameters can still act differently.
    """

    hidden: Sequence[int] = (64, 64)
    activation: Activation = "tanh"
    layer_norm: bool = False
    observation_norm: bool = False
    gru: int | None = None
    agent_id: bool = True

    def __post_init__(self) -> None:
        self.hidden = list(self.hidden)
        check_choice("activation", self.activation, Activation)


def as_key(key: str | Sequence[Any]) -> NestedKey:
    """Read a key back from JSON, where tuples have become lists.

    Example:
        >>> as_key(["agents", "action"]), as_key(["action"]), as_key("action")
        (('agents', 'action'), 'action', 'action')
    """
    return key if isinstance(key, str) else unravel_key(tuple(key))


def as_json(value: Any) -> Any:
    """Write a description the way JSON reads it back, or raise if JSON cannot hold it.

    Example:
        >>> as_json({"key": ("agents", "action"), "size": 2})
        {'key': ['agents', 'action'], 'size': 2}
    """
    return json.loads(json.dumps(value, allow_nan=False))


def check_choice(name: str, value: str, choices: Any) -> None:
    """Raise unless a value is among a ``Literal``'s choices.

    Example:
        >>> check_choice("activation", "relu", Activation)
    """
    if value not in get_args(choices):
        raise ValueError(f"{name} is {value!r}; choose one of {list(get_args(choices))}.")
