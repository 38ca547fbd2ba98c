"""Whole trainings: against a plain loop, and the two frameworks against each other."""

import sys
import tempfile
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3 import PPO
from tensordict import TensorDict
from torch import Tensor, nn

from benchmarks.precision import FASTEST_PRECISION, NATIVE_PRECISIONS
from benchmarks.table import Row, main
from benchmarks.timing import Call, compare, in_turns, make_row
from sipo_trl.algorithms.pbt import Population
from sipo_trl.envs.config import NavigationConfig
from sipo_trl.envs.navigation import TIME_STEP, TOUCH_DISTANCE
from sipo_trl.measures import FinalStateMeasure
from sipo_trl.training.attempt import Attempt
from sipo_trl.training.config import (
    AlgorithmConfig,
    BudgetConfig,
    CollectorConfig,
    FinalStateConfig,
    ITRConfig,
    NetworkConfig,
    PPOConfig,
)

FRAMES = 4000
ENVS = 1000
POLICIES = 4


def rows(*, quick: bool) -> Iterator[Row]:
    """Measure everything at the sizes of ``docs/benchmarks.md``."""
    rounds = 3 if quick else 9
    yield from against_one_environment(rounds=rounds)
    yield itr_against_pbt(rounds=rounds)


def against_one_environment(
    *, rounds: int, envs: int = ENVS, frames: int = FRAMES
) -> Iterator[Row]:
    """Compare collecting and learning from one batch with the way of the published script."""
    ours = {name: make_attempt(0, envs, frames, precision=name) for name in NATIVE_PRECISIONS}
    plain = PlainLoop(make_attempt(0, 1, frames, compiled=False, precision="float32"), frames)
    lean = PlainLoop(make_attempt(0, 1, frames), frames)
    baseline = make_baseline(lean.env, frames)
    peers: dict[str, Call] = {
        "a plain loop over one environment, our update as it is by default": plain.step,
        f"the same loop, our update compiled and in {FASTEST_PRECISION}": lean.step,
        "Stable-Baselines3, one environment, the same batch and passes": lambda: baseline.learn(
            frames, reset_num_timesteps=False
        ),
    }
    calls = {name: attempt.step for name, attempt in ours.items()} | peers
    times = in_turns(calls, rounds=rounds)
    what = f"navigation, {frames} frames by {envs} copies, and their update"
    for name, peer in product(ours, peers):
        yield make_row(f"{what} in {name}", times[name], peer, times[peer], most_ratio=1 / 20)
    for attempt in ours.values():
        attempt.close()


def itr_against_pbt(*, rounds: int, envs: int = ENVS, frames: int = FRAMES) -> Row:
    """Compare one update of each of four policies, one after another and all at once."""
    attempts = [make_attempt(archived, envs, frames) for archived in range(POLICIES)]
    with tempfile.TemporaryDirectory() as folder:
        population = Population(make_config(envs, frames), Path(folder))

        def round_of_population() -> None:
            population.step()

        def updates_in_a_row() -> None:
            for attempt in attempts:
                attempt.step()

        row = compare(
            f"ITR: an update of each of {POLICIES} policies, {frames} frames each",
            updates_in_a_row,
            "PBT: a round of the same size",
            round_of_population,
            rounds=rounds,
        )
        population.close()
    for attempt in attempts:
        attempt.close()
    return row


def make_config(
    envs: int, frames: int, *, compiled: bool = True, precision: str = FASTEST_PRECISION
) -> ITRConfig:
    """2-D navigation with the paper's update: ten passes over a whole batch."""
    return ITRConfig(
        env=NavigationConfig(),
        measure=FinalStateConfig(delta=0.1, radius=0.4),
        algorithm=AlgorithmConfig(name="sipo"),
        collector=CollectorConfig(num_envs=envs, frames_per_batch=frames),
        network=NetworkConfig(distribution="normal"),
        ppo=PPOConfig(
            discount=0.997, entropy=0.0, actor_lr=3e-4, compile=compiled, precision=precision
        ),
        budget=BudgetConfig(name="full", frames=320_000),
        iterations=POLICIES,
    )


def make_baseline(env: "OneNavigation", frames: int) -> PPO:
    """Make Stable-Baselines3's PPO with the same network, batch and passes."""
    return PPO(
        "MlpPolicy",
        env,
        n_steps=frames,
        batch_size=frames,
        n_epochs=10,
        gamma=0.997,
        policy_kwargs={"net_arch": {"pi": [64, 64], "vf": [64, 64]}},
        device="cpu",
        seed=0,
    )


def make_attempt(archived: int, envs: int, frames: int, **update: Any) -> Attempt:
    """Make a learner against so many archived policies."""
    config = make_config(envs, frames, **update)
    torch.manual_seed(0)
    measure = FinalStateMeasure([torch.rand(1, 2) for _ in range(archived)], radius=0.4)
    return Attempt(config, config.env.make(envs, seed=0), measure)


class OneNavigation(gymnasium.Env[NDArray[np.float32], NDArray[np.float32]]):
    """2-D navigation as an environment of its own: numpy, one copy, gymnasium's interface.

    Args:
        landmarks: where they are [N, 2].
        horizon: the longest that an episode can be.
    """

    def __init__(self, landmarks: NDArray[np.float32], horizon: int) -> None:
        size = 2 + landmarks.size
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (size,), np.float32)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)
        self.landmarks, self.horizon = landmarks, horizon

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Start at the origin."""
        super().reset(seed=seed)
        self.position, self.time = np.zeros(2, np.float32), 0
        return self._observation(), {}

    def step(
        self, action: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Move by a velocity."""
        self.position = self.position + np.float32(TIME_STEP) * np.clip(action, -1, 1)
        self.time += 1
        distance = np.linalg.norm(self.landmarks - self.position, axis=1)
        touched = bool(distance.min() < TOUCH_DISTANCE)
        return self._observation(), float(touched), touched, self.time >= self.horizon, {}

    def _observation(self) -> NDArray[np.float32]:
        return np.concatenate([self.position, self.landmarks.ravel()])


class PlainLoop:
    """PPO as it is often written: a Python loop over the steps of one gymnasium environment.

    Plain torch modules and ``torch.distributions`` act, and lists hold the batch; then comes the
    update of our learner.

    Args:
        attempt: whose learner makes the update.
        frames: steps per batch.
    """

    def __init__(self, attempt: Attempt, frames: int) -> None:
        self.learner, self.frames = attempt.learner, frames
        env = attempt.collector.env
        self.env = OneNavigation(env.landmarks.numpy(), env.horizon)
        size = self.env.observation_space.shape[0]
        self.actor, self.critic = _mlp(size, 2), _mlp(size, 1)
        self.log_std = nn.Parameter(torch.zeros(2))
        self.observation = torch.as_tensor(self.env.reset()[0])

    def step(self) -> None:
        """Collect one batch and learn from it."""
        now = ("observation", "action", "action_log_prob")
        later = ("reward", "done", "terminated")
        lists: dict[str, list[Tensor]] = {name: [] for name in (*now, "next_observation", *later)}
        for _ in range(self.frames):
            self._collect_one(lists)
        data = {name: torch.stack(values).unsqueeze(0) for name, values in lists.items()}
        following = data["next_observation"]
        batch = TensorDict(
            {
                **{name: data[name] for name in now},
                "next": {
                    "observation": following,
                    "diversity_state": following[..., :2],
                    "success": data["terminated"],
                    **{name: data[name] for name in later},
                },
            },
            [1, self.frames],
        )
        self.learner.update(batch)

    @torch.no_grad()
    def _collect_one(self, lists: dict[str, list[Tensor]]) -> None:
        distribution = torch.distributions.Normal(self.actor(self.observation), self.log_std.exp())
        action = distribution.sample()
        log_prob = distribution.log_prob(action).sum(-1)
        self.critic(self.observation)
        following, reward, terminated, truncated, _ = self.env.step(action.numpy())
        lists["observation"].append(self.observation)
        lists["action"].append(action)
        lists["action_log_prob"].append(log_prob)
        lists["next_observation"].append(torch.as_tensor(following))
        lists["reward"].append(torch.tensor([reward]))
        lists["done"].append(torch.tensor([terminated or truncated]))
        lists["terminated"].append(torch.tensor([terminated]))
        if terminated or truncated:
            following, _ = self.env.reset()
        self.observation = torch.as_tensor(following)


def _mlp(inputs: int, outputs: int) -> nn.Module:
    return nn.Sequential(
        nn.Linear(inputs, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, outputs)
    )


if __name__ == "__main__":
    sys.exit(main(only="training"))
