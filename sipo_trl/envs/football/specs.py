"""What a football environment promises to report."""

from typing import Literal

from torchrl.data import Categorical, Composite, Unbounded
from torchrl.envs import EnvBase

from sipo_trl.envs.football.matches import ACTIONS, OBSERVATIONS
from sipo_trl.envs.specs import flag_spec, set_reward_and_ends

Diversity = Literal["attackers", "full", "random", "state_action"]


def diversity_size(diversity: Diversity, agents: int) -> int:
    """Number of features of a diversity state.

    Examples:
        >>> [diversity_size(kind, 3) for kind in ("attackers", "full", "random", "state_action")]
        [18, 115, 36, 75]
    """
    attackers = 4 * agents + 6
    sizes: dict[Diversity, int] = {
        "attackers": attackers,
        "full": OBSERVATIONS,
        "random": 2 * attackers,
        "state_action": attackers + len(ACTIONS) * agents,
    }
    return sizes[diversity]


def set_football_specs(env: EnvBase, *, agents: int, diversity: int) -> None:
    """Give a batched environment the specs of a team.

    Args:
        env: batch-locked [N].
        agents: number A of controlled players.
        diversity: size of ``diversity_state``.
    """
    shape, device = env.batch_size, env.device
    team = (*shape, agents)
    number, group = len(ACTIONS), {"shape": team, "device": device}
    env.full_action_spec = Composite(
        agents=Composite(action=Categorical(number, shape=team, device=device), **group),
        shape=shape,
        device=device,
    )
    env.observation_spec = Composite(
        agents=Composite(
            observation=Unbounded((*team, OBSERVATIONS), device=device),
            **group,
        ),
        diversity_state=Unbounded((*shape, diversity), device=device),
        position=Unbounded((*team, 2), device=device),
        ball=Unbounded((*shape, 3), device=device),
        success=flag_spec(env),
        lost=flag_spec(env),
        practice=flag_spec(env),
        shape=shape,
        device=device,
    )
    set_reward_and_ends(env)
