"""What environments in which bodies move promise to report."""

import torch
from torchrl.data import Bounded, Categorical, Composite, Unbounded
from torchrl.envs import EnvBase


def set_motion_specs(
    env: EnvBase, *, observations: int, diversity: int, actuators: int, action_bound: float
) -> None:
    """Give a batched environment the specs of a moving body.

    Args:
        env: batch-locked [N].
        observations: size of ``observation``.
        diversity: size of ``diversity_state``.
        actuators: size of the action and of ``torque``.
        action_bound: greatest magnitude of an action's components.
    """
    shape, device = env.batch_size, env.device
    flag = Categorical(2, shape=(*shape, 1), dtype=torch.bool, device=device)
    env.action_spec = Bounded(-action_bound, action_bound, shape=(*shape, actuators), device=device)
    env.observation_spec = Composite(
        observation=Unbounded((*shape, observations), device=device),
        diversity_state=Unbounded((*shape, diversity), device=device),
        torque=Unbounded((*shape, actuators), device=device),
        success=flag,
        shape=shape,
        device=device,
    )
    env.reward_spec = Unbounded((*shape, 1), device=device)
    env.full_done_spec = Composite(
        done=flag.clone(),
        terminated=flag.clone(),
        truncated=flag.clone(),
        shape=shape,
        device=device,
    )
