"""Playing football with a policy, against the engine alone and against gfootball's own wrappers.

This is wall-clock time on all cores: the matches are played by several processes, and the time in
which they wait for the policy, or for each other, is what matters.
"""

import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from tensordict import TensorDict, TensorDictBase
from tensordict.nn import TensorDictModuleBase, TensorDictSequential
from torchrl.collectors import Collector
from torchrl.data import Composite
from torchrl.envs import EnvBase, ParallelEnv, SerialEnv

from benchmarks.football_engine import BareEngine
from benchmarks.table import Row, main
from benchmarks.timing import in_turns, make_row
from sipo_trl.envs import FootballEnv
from sipo_trl.envs.cores import all_cores
from sipo_trl.envs.episodes import remembering
from sipo_trl.envs.football.matches import layout
from sipo_trl.envs.football.specs import set_football_specs
from sipo_trl.envs.workers import WorkerPool
from sipo_trl.models import Actor, make_actor, make_critic
from sipo_trl.training import WorkerCollector

SCENARIO, AGENTS = "academy_3_vs_1_with_keeper", 3


def rows(*, quick: bool) -> Iterator[Row]:
    """Measure everything at the sizes of ``docs/benchmarks.md``."""
    rounds = 3 if quick else 11
    yield against_engine(64, frames=40, frame_skip=1, rounds=rounds)
    yield against_engine(64, frames=10, frame_skip=4, rounds=rounds)
    yield against_wrappers(64, frames=10, rounds=rounds)


def against_engine(envs: int, *, frames: int, frame_skip: int, rounds: int) -> Row:
    """Compare the collection of a batch with as many steps of the engine alone."""
    workers = min(all_cores(), envs)
    env = FootballEnv(SCENARIO, batch_size=[envs], seed=0, workers=workers, frame_skip=frame_skip)
    bare, limit = bare_engines(envs, frames=frames * frame_skip, workers=workers)
    calls = {"ours": collect_in_workers(env, frames=frames), "limit": limit}
    times = in_turns(calls, rounds=rounds, clock=time.perf_counter)
    env.close()
    bare.close()
    return make_row(
        f"{frames} decisions, each of {frame_skip} steps, in {envs} matches by a recurrent team",
        times["ours"],
        f"the engine alone, in {workers} processes",
        times["limit"],
        most_ratio=1 / 0.8,
    )


def against_wrappers(envs: int, *, frames: int, rounds: int) -> Row:
    """Compare the collection of a batch with TorchRL's way."""
    workers = min(all_cores(), envs)
    env = FootballEnv(SCENARIO, batch_size=[envs], seed=0, workers=workers)
    policy = TensorDictSequential(*recurrent_team(env))
    wrapped = ParallelEnv(workers, lambda: SerialEnv(envs // workers, WrappedFootball))
    calls = {
        "ours": collect_in_workers(env, frames=frames),
        "theirs": collect(wrapped, policy, frames=frames),
    }
    times = in_turns(calls, rounds=rounds, clock=time.perf_counter)
    env.close()
    wrapped.close()
    return make_row(
        f"{frames} decisions, each of 1 step, in {envs} matches by a recurrent team",
        times["ours"],
        "gfootball's wrappers in TorchRL's ParallelEnv",
        times["theirs"],
        most_ratio=1 / 1.5,
    )


def recurrent_team(env: EnvBase) -> tuple[Actor, TensorDictModuleBase]:
    """A fresh actor, and the critic that has to remember too."""
    shape: dict[str, Any] = {
        "hidden": [64, 64],
        "activation": "relu",
        "layer_norm": True,
        "gru": 64,
    }
    return make_actor(env, **shape), make_critic(env, heads=1, **shape)


def collect_in_workers(env: FootballEnv, *, frames: int) -> Callable[[], TensorDictBase]:
    """Collects one batch after another, as training does, and waits for what workers do after it.

    While a policy learns, they prepare the next episodes. Here that would be at the cost of
    whoever is measured next.
    """
    size = frames * env.batch_size.numel()
    collector = WorkerCollector(env, *recurrent_team(env), frames_per_batch=size)
    matches = env.pool.arrays

    def call() -> TensorDictBase:
        batch = collector.next()
        while not (matches["start_length"] * (matches["start_seed"] == matches["seed"])).all():
            time.sleep(0.001)
        return batch

    return call


def collect(
    env: EnvBase, policy: TensorDictModuleBase, *, frames: int
) -> Callable[[], TensorDictBase]:
    """Collects one batch after another."""
    collector = Collector(
        remembering(env, policy),
        policy,
        frames_per_batch=frames * env.batch_size.numel(),
        total_frames=-1,
        track_traj_ids=False,
        trust_policy=True,
        auto_register_policy_transforms=False,
    )
    return collector.next


def bare_engines(
    envs: int, *, frames: int, workers: int
) -> tuple[WorkerPool, Callable[[], np.ndarray]]:
    """As many steps of the engine, shared by as many processes that never wait for each other."""
    pool = WorkerPool(
        BareEngine,
        copies=workers,
        workers=workers,
        layout=layout(AGENTS),
        options={"scenario": SCENARIO, "frames": envs * frames // workers},
    )
    everyone = np.ones(workers, dtype=bool)
    return pool, lambda: pool.run(0, everyone)


class WrappedFootball(EnvBase):
    """One match behind gfootball's own wrappers, whose rewards TorchRL's GymWrapper refuses."""

    def __init__(self) -> None:
        import gfootball.env

        super().__init__(batch_size=[])
        self._game = gfootball.env.create_environment(
            SCENARIO,
            representation="simple115v2",
            rewards="scoring,checkpoints",
            number_of_left_players_agent_controls=AGENTS,
        )
        set_football_specs(self, agents=AGENTS, diversity=18)
        self.observation_spec = Composite(agents=self.observation_spec["agents"])

    def _step(self, tensordict: TensorDictBase) -> TensorDictBase:
        observation, reward, done, _ = self._game.step(tensordict["agents", "action"].numpy())
        return self._report(observation, done, reward=torch.tensor([reward.mean()]))

    def _reset(self, tensordict: TensorDictBase | None = None, **_: object) -> TensorDictBase:
        return self._report(self._game.reset(), False)

    def _report(self, observation: np.ndarray, done: bool, **more: torch.Tensor) -> TensorDict:
        flag = torch.tensor([done])
        team = TensorDict({"observation": torch.from_numpy(observation)}, [AGENTS])
        flags = {"done": flag, "terminated": flag.clone(), "truncated": torch.zeros_like(flag)}
        return TensorDict({"agents": team, **flags, **more})

    def _set_seed(self, seed: int | None) -> None:
        """Matches differ by Python's global generator."""


if __name__ == "__main__":
    sys.exit(main(only="football"))
