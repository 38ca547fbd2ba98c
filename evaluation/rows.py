"""What metrics look at: rows and positions, taken out of a policy's columns."""

import torch
from torch import Tensor

from evaluation.population import InputError, Policy

# Position and velocity of the ball, in three dimensions, end football's diversity state.
_BALL_FEATURES = 6


def current_states(policy: Policy) -> Tensor:
    """The states [n, F] without the earlier ones that are stacked before them."""
    flat = policy.states.flatten(1)
    settings = policy.config.get("env")
    stack = settings.get("stack", 1) if isinstance(settings, dict) else 1
    if not isinstance(stack, int) or stack < 1 or flat.shape[1] % stack:
        return flat
    return flat[:, -(flat.shape[1] // stack) :]


def entropy_rows(policy: Policy) -> Tensor:
    """The rows [n, F] of won episodes over which the state entropy is taken.

    Where agents die there is one row per living agent (SMAC), where there is a ball one per step
    without it (football), else one per step.
    """
    won = policy.won
    kept = torch.ones(len(policy.states), dtype=torch.bool) if won is None else won
    if policy.has("alive"):
        alive = policy.column("alive").bool()
        current = current_states(policy)
        if current.shape[1] % alive.shape[1]:
            raise InputError(
                f"{policy.path}: {current.shape[1]} features cannot be shared by the "
                f"{alive.shape[1]} agents of the column 'alive'."
            )
        agents = current.unflatten(1, (alive.shape[1], -1))
        return agents[alive & kept.unsqueeze(1)]
    if policy.has("ball"):
        return current_states(policy)[kept][:, :-_BALL_FEATURES]
    return policy.states.flatten(1)[kept]


def positions(policy: Policy) -> Tensor:
    """Positions on the plane [m, 2]: of living agents, or the states where these are positions."""
    if policy.has("position"):
        places = policy.column("position")
        places = places.unsqueeze(1) if places.ndim == 2 else places
        if policy.has("alive"):
            return places[policy.column("alive").bool()]
        return places.flatten(0, 1)
    current = current_states(policy)
    if current.shape[1] != 2:
        raise InputError(
            f"{policy.path}: there is no column 'position', and states of {current.shape[1]} "
            "features are none: archive positions [n, agents, 2] along with the states."
        )
    return current
