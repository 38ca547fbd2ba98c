"""What all our environments promise alike."""

import torch
from torchrl.data import Categorical, Composite, Unbounded
from torchrl.envs import EnvBase


def flag_spec(env: EnvBase) -> Categorical:
    """One yes or no for each copy of an environment [*, 1]."""
    return Categorical(2, shape=(*env.batch_size, 1), dtype=torch.bool, device=env.device)


def set_reward_and_ends(env: EnvBase) -> None:
    """Give an environment one reward, and the three flags that say how an episode ends.

    Args:
        env: batch-locked [*].
    """
    shape, device = env.batch_size, env.device
    env.reward_spec = Unbounded((*shape, 1), device=device)
    env.full_done_spec = Composite(
        {name: flag_spec(env) for name in ("done", "terminated", "truncated")},
        shape=shape,
        device=device,
    )
