"""In which features of the diversity state policies differ."""

from typing import Any

import numpy as np
import torch

from evaluation.population import Population
from evaluation.rows import current_states

# Images have too many features to be listed, and their pixels mean nothing by themselves.
_MOST = 512
_QUANTILES, _BINS = 33, 30

_NAVIGATION = ["x", "y"]
_HUMANOID = [
    "torso height",
    *(f"velocity {axis}" for axis in "xyz"),
    *(f"angular velocity {axis}" for axis in "xyz"),
    "yaw",
    "roll",
    "angle to target",
    "up",
    "heading",
    *(f"joint {index + 1} angle" for index in range(21)),
    *(f"joint {index + 1} speed" for index in range(21)),
]
# Kinds of units are told apart by features of their own, where a side has several.
_UNIT = ["health", "cooldown", "x", "y", "shield", *(f"kind {index + 1}" for index in range(8))]
_BALL = [f"ball {what}{axis}" for what in ("", "velocity ") for axis in "xyz"]


def feature_names(env: str | None, number: int, agents: int = 1) -> list[str]:
    """Names of the features of one diversity state.

    Args:
        env: the environment's name, if it is known.
        number: how many features there are.
        agents: how many agents share them, where there are several.

    Examples:
        >>> feature_names("navigation", 2), feature_names(None, 2)
        (['x', 'y'], ['feature 1', 'feature 2'])
        >>> feature_names("smac_2m_vs_1z", 8, agents=2)[3:6]
        ['unit 1 y', 'unit 2 health', 'unit 2 cooldown']
    """
    domain = (env or "").partition("_")[0]
    known = {"navigation": _NAVIGATION, "humanoid": _HUMANOID}.get(domain, [])
    if domain == "smac":
        unit = _UNIT[: number // agents]
        known = [f"unit {agent + 1} {what}" for agent in range(agents) for what in unit]
    elif domain == "football":
        known = [
            f"player {agent + 1} {what}{axis}"
            for what in ("", "velocity ")
            for agent in range(agents)
            for axis in "xy"
        ] + _BALL
    if len(known) == number:
        return known
    return [f"feature {index + 1}" for index in range(number)]


def feature_content(population: Population) -> dict[str, Any] | None:
    """Quantiles and histograms of each feature, of each policy; ``None`` for images."""
    states = [current_states(policy).double() for policy in population]
    number = states[0].shape[1]
    if number > _MOST:
        return None
    pooled = torch.cat(states)
    low, high = pooled.aminmax(dim=0)
    high = torch.where(high > low, high, low + 1)
    edges = [np.linspace(a, b, _BINS + 1) for a, b in zip(low.tolist(), high.tolist(), strict=True)]
    levels = torch.linspace(0, 1, _QUANTILES, dtype=torch.float64)
    return {
        "names": feature_names(population.env, number, _agents(population)),
        "scale": _short(pooled.std(0, correction=0)),
        "range": [_short(low), _short(high)],
        # torch's quantile refuses large inputs.
        "quantiles": [
            _short(np.quantile(some.numpy(), levels.numpy(), axis=0).T) for some in states
        ],
        "histograms": [
            [
                _short(np.histogram(some[:, f].numpy(), bins=edges[f])[0] / len(some))
                for f in range(number)
            ]
            for some in states
        ],
    }


def _agents(population: Population) -> int:
    policy = population.policies[0]
    shape = policy.column("position").shape if policy.has("position") else ()
    return shape[1] if len(shape) == 3 else 1


def _short(values: Any) -> Any:
    """Nested lists of four-digit numbers."""
    nested = np.asarray(values)
    if nested.ndim > 1:
        return [_short(row) for row in nested]
    return [float(f"{value:.4g}") for value in nested.tolist()]
