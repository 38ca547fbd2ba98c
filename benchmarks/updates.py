"""What one more archived policy costs a training update."""

from collections.abc import Iterator
from functools import partial

import torch

from benchmarks.table import Row
from benchmarks.timing import in_turns, make_row
from sipo_trl.envs.config import NavigationConfig
from sipo_trl.measures import RBFMeasure
from sipo_trl.training.attempt import Attempt
from sipo_trl.training.config import (
    AlgorithmConfig,
    BudgetConfig,
    CollectorConfig,
    ITRConfig,
    MultiplierConfig,
    PPOConfig,
    RBFConfig,
)


def growth(
    *,
    rounds: int,
    entries: tuple[int, ...] = (1, 2, 4, 8),
    states: int = 10_000,
    envs: int = 80,
    steps: int = 50,
) -> Iterator[Row]:
    """Measure how a whole update, collection included, grows with the archive."""
    attempts = {number: make_attempt(number, states, envs, steps) for number in (0, *entries)}
    largest = max(entries)
    measure = attempts[largest].learner.distance.measure
    visited = attempts[largest].collector.next()["next", "diversity_state"]
    calls = {f"update {number}": attempt.step for number, attempt in attempts.items()}
    times = in_turns({**calls, "kernel": partial(measure.reward, visited)}, rounds=rounds)
    empty = times["update 0"]
    frames, peer = envs * steps, "the update with an empty archive"
    what = f"cost of an archive entry, {states} states of 2 features, to an update of {frames}"
    for number in entries:
        full = times[f"update {number}"]
        added = [(with_ - without) / number for with_, without in zip(full, empty, strict=True)]
        yield make_row(f"{what}: archive of {number}", added, peer, empty, most_ratio=0.1)
    kernel = [seconds / largest for seconds in times["kernel"]]
    yield make_row(f"{what}: the RBF reward alone", kernel, peer, empty)
    for attempt in attempts.values():
        attempt.close()


def make_attempt(entries: int, states: int, envs: int, steps: int) -> Attempt:
    """Make a navigation learner against an archive with so many states in each entry."""
    config = ITRConfig(
        env=NavigationConfig(),
        measure=RBFConfig(delta=0.1),
        algorithm=AlgorithmConfig(name="sipo", multiplier=MultiplierConfig(lr=0.5, initial=5.0)),
        collector=CollectorConfig(num_envs=envs, frames_per_batch=envs * steps),
        # Policies that stay as they are: collecting costs more, the more often episodes end.
        ppo=PPOConfig(discount=0.997, entropy=0.0, actor_lr=0.0, epochs=10, minibatches=4),
        budget=BudgetConfig(name="quick", frames=320_000),
    )
    torch.manual_seed(0)
    references = [torch.rand(states, 2) * 2 - 1 for _ in range(entries)]
    measure = RBFMeasure(references, horizon=config.env.horizon)
    return Attempt(config, config.env.make(envs, seed=0), measure)
