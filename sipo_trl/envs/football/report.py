"""What a football environment reports, from what its workers write."""

from collections.abc import Callable, Mapping

import torch
from tensordict import TensorDict
from torch import Tensor

from sipo_trl.envs.football.matches import ACTIONS, ACTIVE, MOST_PLAYERS
from sipo_trl.envs.football.specs import Diversity

BALL = slice(88, 94)
"""Where an observation holds position and velocity of the ball."""


def report(
    step: Mapping[str, Tensor],
    *,
    agents: int,
    diversity: Diversity,
    noise: Callable[[int], Tensor],
) -> TensorDict:
    """Bring steps of matches into the form of an environment's observations.

    Args:
        step: ``observation`` and ``scene`` [*, 115], ``action`` [*, A] (-1 before the first), and
            [*] ``terminated``, ``truncated``, ``success``, ``lost`` and ``practice``.

    Keyword Args:
        agents: number A of controlled players.
        diversity: what tells policies apart.
        noise: gives so many random numbers per step [*, size].

    Returns:
        All but the reward [*].
    """
    scene = step["scene"]
    observation = step["observation"].unsqueeze(-2).repeat_interleave(agents, -2)
    observation[..., ACTIVE] = torch.eye(MOST_PLAYERS)[1 : 1 + agents]
    terminated, truncated = step["terminated"], step["truncated"] > step["terminated"]
    flags = {
        "terminated": terminated,
        "truncated": truncated,
        "done": terminated | truncated,
        "success": step["success"] & ~step["lost"],
        "lost": step["lost"],
        "practice": step["practice"],
    }
    return TensorDict(
        {
            "agents": TensorDict({"observation": observation}, observation.shape[:-1]),
            "diversity_state": _diversity_state(scene, step["action"], agents, diversity, noise),
            "position": scene[..., 2 : 2 + 2 * agents].unflatten(-1, (agents, 2)),
            "ball": scene[..., BALL][..., :3],
            **{name: flag.unsqueeze(-1) for name, flag in flags.items()},
        },
        batch_size=scene.shape[:-1],
    )


def _diversity_state(
    scene: Tensor,
    action: Tensor,
    agents: int,
    diversity: Diversity,
    noise: Callable[[int], Tensor],
) -> Tensor:
    if diversity == "full":
        return scene
    field, size = slice(2, 2 + 2 * agents), 2 * MOST_PLAYERS
    velocity = slice(field.start + size, field.stop + size)
    state = torch.cat([scene[..., part] for part in (field, velocity, BALL)], -1)
    if diversity == "random":
        return torch.cat([state, noise(state.shape[-1])], -1)
    if diversity == "state_action":
        taken = action.unsqueeze(-1) == torch.arange(len(ACTIONS))
        return torch.cat([state, taken.flatten(-2).float()], -1)
    return state
