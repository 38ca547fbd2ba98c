"""Times JaxMARL's SMAX; run by the interpreter that has it: ``smax.py ENVS STEPS ROUNDS``.

The last line is the seconds of each round, in which all environments make some steps with random
legal actions on one core.
"""

import os
import sys
import time

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def main(envs: int, steps: int, rounds: int) -> None:
    """Measure and print."""
    import jax
    import jax.numpy as jnp
    from jaxmarl import make
    from jaxmarl.environments.smax import map_name_to_scenario

    env = make("HeuristicEnemySMAX", scenario=map_name_to_scenario("2s3z"))

    def step(carry, key):
        observation, state = carry
        masks = jax.vmap(env.get_avail_actions)(state)
        draw, move = jax.random.split(key)
        actions = {
            agent: jnp.argmax(jax.random.uniform(draw, mask.shape) * mask, -1)
            for agent, mask in masks.items()
        }
        observation, state, *_ = jax.vmap(env.step)(jax.random.split(move, envs), state, actions)
        return (observation, state), None

    @jax.jit
    def play(carry, key):
        return jax.lax.scan(step, carry, jax.random.split(key, steps))[0]

    carry = jax.vmap(env.reset)(jax.random.split(jax.random.PRNGKey(0), envs))
    for number in range(2):  # what comes out of the first call is compiled for once more
        carry = jax.block_until_ready(play(carry, jax.random.PRNGKey(number)))
    times = []
    for number in range(rounds):
        start = time.perf_counter()
        carry = jax.block_until_ready(play(carry, jax.random.PRNGKey(2 + number)))
        times.append(time.perf_counter() - start)
    print(*times)  # JaxMARL has printed lines of its own before


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
