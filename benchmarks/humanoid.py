"""Stepping humanoids, against the physics alone and against other vectorised simulators.

This is wall-clock time on all cores: the physics runs on several threads, so that the CPU time
would leave out for how long the other threads wait for the one that computes the reward.
"""

import sys
import time
from collections.abc import Callable, Iterator

import gymnasium
import numpy as np
import torch
from gymnasium.vector import SyncVectorEnv
from mujoco import MjData
from mujoco.rollout import Rollout
from torch import Tensor

from benchmarks.table import Row, main
from benchmarks.timing import in_turns, make_row
from sipo_trl.envs import HumanoidEnv
from sipo_trl.envs.cores import all_cores

FRAMES = 20
# They take seconds: what they need for a tenth of the frames says enough.
PEER_FRAMES = 2


def rows(*, quick: bool) -> Iterator[Row]:
    """Measure everything at the sizes of ``docs/benchmarks.md``."""
    rounds = 3 if quick else 15
    for envs in (256, 1024):
        yield from stepping(envs, rounds=rounds)


def stepping(envs: int, *, rounds: int) -> Iterator[Row]:
    """Compare steps and resets under held random actions with the limit and with others."""
    ours = Stepper(envs)
    peers = {
        "gymnasium's SyncVectorEnv, Humanoid-v5": gymnasium_steps(envs),
        "envpool, Humanoid-v5": envpool_steps(envs),
    }
    calls = {"ours": ours.step, "limit": ours.physics, **peers}
    times = in_turns(calls, rounds=rounds, clock=time.perf_counter)
    what = f"{FRAMES} steps of {envs} humanoids"
    limit = "the same physics, in one call"
    yield make_row(what, times["ours"], limit, times["limit"], most_ratio=1 / 0.75)
    for name in peers:
        theirs = [FRAMES / PEER_FRAMES * seconds for seconds in times[name]]
        yield make_row(what, times["ours"], name, theirs)


class Stepper:
    """Our environment, as a collector steps it, and its physics alone.

    Under random actions bodies fall after 30 frames or so. Without resets they would then lie on
    the floor, where physics is slower; so the physics alone goes through the 20 frames in the
    midst of the episodes.

    Args:
        envs: number of copies.
    """

    def __init__(self, envs: int) -> None:
        self.env = env = HumanoidEnv(batch_size=[envs], seed=0)
        self.action = env.action_spec.rand()
        self.data = env.reset()
        self.step(10)
        self.physics = physics_alone(env, self.action)
        self.step(50)  # until the copies are all at different places

    def step(self, frames: int = FRAMES) -> None:
        """Makes some frames, with the resets that are due."""
        for _ in range(frames):
            self.data.set("action", self.action)
            _, self.data = self.env.step_and_maybe_reset(self.data)


def physics_alone(env: HumanoidEnv, action: Tensor) -> Callable[[], object]:
    """Moves the bodies from where they are, with nothing between the frames and nothing to make."""
    model, steps = env.task.model, FRAMES * env.task.frame_skip
    rollout, data = Rollout(nthread=all_cores()), [MjData(model) for _ in range(all_cores())]
    start = torch.cat([torch.zeros_like(env.qpos[:, :1]), env.qpos, env.qvel], -1).numpy()
    control = action.double().unsqueeze(1).repeat(1, steps, 1).numpy()
    warmstart = env.warmstart.numpy()
    states = np.zeros((len(start), steps, start.shape[-1]))
    sensors = np.zeros((len(start), steps, model.nsensordata))

    def move() -> None:
        rollout.rollout(
            [model] * len(start),
            data,
            start,
            control,
            skip_checks=True,
            nstep=steps,
            initial_warmstart=warmstart,
            state=states,
            sensordata=sensors,
        )

    return move


def gymnasium_steps(envs: int) -> Callable[[], object]:
    """Steps of gymnasium's humanoid in one process."""
    env = SyncVectorEnv([lambda: gymnasium.make("Humanoid-v5")] * envs)
    env.reset(seed=0)
    action = env.action_space.sample()

    def steps() -> None:
        for _ in range(PEER_FRAMES):
            env.step(action)

    return steps


def envpool_steps(envs: int) -> Callable[[], object]:
    """Steps of envpool's humanoid on as many threads as ours."""
    import envpool  # for Linux only

    env = envpool.make_gymnasium("Humanoid-v5", num_envs=envs, seed=0)
    env.reset()
    shape = (envs, *env.action_space.shape)
    action = np.random.default_rng(0).uniform(-0.4, 0.4, shape)

    def steps() -> None:
        for _ in range(PEER_FRAMES):
            env.step(action)

    return steps


if __name__ == "__main__":
    sys.exit(main(only="humanoid"))
