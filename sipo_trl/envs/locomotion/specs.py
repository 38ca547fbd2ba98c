"""What environments in which bodies move promise to report."""

from torchrl.data import Bounded, Composite, Unbounded
from torchrl.envs import EnvBase

from sipo_trl.envs.specs import flag_spec, set_reward_and_ends


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
    env.action_spec = Bounded(-action_bound, action_bound, shape=(*shape, actuators), device=device)
    env.observation_spec = Composite(
        observation=Unbounded((*shape, observations), device=device),
        diversity_state=Unbounded((*shape, diversity), device=device),
        torque=Unbounded((*shape, actuators), device=device),
        success=flag_spec(env),
        shape=shape,
        device=device,
    )
    set_reward_and_ends(env)
