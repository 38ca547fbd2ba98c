"""Whole trainings: against a plain loop, and the two frameworks against each other."""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import torch
from tensordict import TensorDict
from torch import Tensor, nn

from benchmarks.table import Row, main
from benchmarks.timing import compare
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
    PPOConfig,
)

FRAMES = 4000
POLICIES = 4


def rows(*, quick: bool) -> Iterator[Row]:
    """Measure everything at the sizes of ``docs/benchmarks.md``."""
    rounds = 3 if quick else 9
    yield against_plain_loop(rounds=rounds)
    yield itr_against_pbt(rounds=rounds)


def against_plain_loop(*, rounds: int, envs: int = 400, frames: int = FRAMES) -> Row:
    """Compare collecting and learning from one batch with the way of the published script."""
    ours = make_attempt(0, envs, frames)
    plain = PlainLoop(make_attempt(0, 1, frames), frames)
    row = compare(
        f"navigation, a batch of {frames} frames collected by {envs} copies, and its update",
        ours.step,
        "one environment at a time, the same update",
        plain.step,
        rounds=rounds,
        most_ratio=1 / 20,
    )
    ours.close()
    return row


def itr_against_pbt(*, rounds: int, envs: int = 400, frames: int = FRAMES) -> Row:
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


def make_config(envs: int, frames: int) -> ITRConfig:
    """2-D navigation with the paper's update: ten passes over a whole batch."""
    return ITRConfig(
        env=NavigationConfig(),
        measure=FinalStateConfig(delta=0.1, radius=0.4),
        algorithm=AlgorithmConfig(name="sipo"),
        collector=CollectorConfig(num_envs=envs, frames_per_batch=frames),
        ppo=PPOConfig(discount=0.997, entropy=0.0, actor_lr=3e-4),
        budget=BudgetConfig(name="full", frames=320_000),
        iterations=POLICIES,
    )


def make_attempt(archived: int, envs: int, frames: int) -> Attempt:
    """Make a learner against so many archived policies."""
    config = make_config(envs, frames)
    torch.manual_seed(0)
    measure = FinalStateMeasure([torch.rand(1, 2) for _ in range(archived)], radius=0.4)
    return Attempt(config, config.env.make(envs, seed=0), measure)


class PlainLoop:
    """PPO as it is often written: a Python loop over the steps of one environment.

    Plain torch modules and ``torch.distributions`` act, Python numbers are the environment, and
    lists hold the batch; then comes the update of our learner.

    Args:
        attempt: whose learner makes the update.
        frames: steps per batch.
    """

    def __init__(self, attempt: Attempt, frames: int) -> None:
        self.learner, self.frames = attempt.learner, frames
        env = attempt.collector.env
        self.landmarks = env.landmarks.tolist()
        self.horizon = env.horizon
        self.layout = env.landmarks.flatten()
        size = 2 + self.layout.numel()
        self.actor, self.critic = _mlp(size, 2), _mlp(size, 1)
        self.log_std = nn.Parameter(torch.zeros(2))
        self.position, self.time = [0.0, 0.0], 0

    def step(self) -> None:
        """Collect one batch and learn from it."""
        names = ("observation", "action", "action_log_prob", "diversity_state")
        names += ("reward", "done", "terminated")
        lists: dict[str, list[Tensor]] = {name: [] for name in names}
        for _ in range(self.frames):
            self._collect_one(lists)
        data = {name: torch.stack(values).unsqueeze(0) for name, values in lists.items()}
        following = torch.cat([data["diversity_state"], data["observation"][..., 2:]], -1)
        batch = TensorDict(
            {
                **{name: data[name] for name in names[:3]},
                "next": {
                    "observation": following,
                    "success": data["terminated"],
                    **{name: data[name] for name in names[3:]},
                },
            },
            [1, self.frames],
        )
        self.learner.update(batch)

    @torch.no_grad()
    def _collect_one(self, lists: dict[str, list[Tensor]]) -> None:
        observation = torch.cat([torch.tensor(self.position), self.layout])
        distribution = torch.distributions.Normal(self.actor(observation), self.log_std.exp())
        action = distribution.sample()
        log_prob = distribution.log_prob(action).sum(-1)
        self.critic(observation)
        touched, expired = self._move(action.clamp(-1, 1).tolist())
        position = torch.tensor(self.position)
        if touched or expired:
            self.position, self.time = [0.0, 0.0], 0
        lists["observation"].append(observation)
        lists["action"].append(action.clamp(-0.999, 0.999))
        lists["action_log_prob"].append(log_prob)
        lists["diversity_state"].append(position)
        lists["reward"].append(torch.tensor([float(touched)]))
        lists["done"].append(torch.tensor([touched or expired]))
        lists["terminated"].append(torch.tensor([touched]))

    def _move(self, velocity: list[float]) -> tuple[bool, bool]:
        x, y = (p + TIME_STEP * v for p, v in zip(self.position, velocity, strict=True))
        self.position = [x, y]
        self.time += 1
        reach = TOUCH_DISTANCE**2
        touched = any((x - a) ** 2 + (y - b) ** 2 < reach for a, b in self.landmarks)
        return touched, self.time >= self.horizon


def _mlp(inputs: int, outputs: int) -> nn.Module:
    return nn.Sequential(
        nn.Linear(inputs, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, outputs)
    )


if __name__ == "__main__":
    sys.exit(main(only="training"))
