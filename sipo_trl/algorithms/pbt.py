"""Population-based training: all policies at once, each away from all others."""

import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from tensordict import TensorDictBase
from torch import Tensor
from torchrl.envs import EnvBase

from sipo_trl.envs.episodes import without_practice
from sipo_trl.measures import StateDistanceMeasure
from sipo_trl.models import Actor
from sipo_trl.objectives import LagrangeMultipliers
from sipo_trl.training.attempt import Attempt
from sipo_trl.training.checkpoints import Checkpoints
from sipo_trl.training.config import ITRConfig
from sipo_trl.training.entry import append_entry, evaluate_entry
from sipo_trl.training.metrics import MetricsTable, Row
from sipo_trl.training.progress import Progress
from sipo_trl.training.reporting import Reporter
from sipo_trl.training.run_folder import RunError, RunFolder
from sipo_trl.training.seeds import derive_seed, seed_everything

MAX_REFERENCES = 1000  # states of each policy that the others are compared with


class LatestStates:
    """What each member of a population did last: the others' references.

    Args:
        states: what to compare with before anything is known, [1, F] for each member.
        final_only: whether only the last states of episodes count.
    """

    def __init__(self, states: list[Tensor], *, final_only: bool) -> None:
        self.states, self.final_only = states, final_only

    def update(self, member: int, batch: TensorDictBase) -> None:
        """Replaces a member's states by those of its newest batch, if there are any."""
        steps = batch["next"].select("diversity_state", "done", "practice", strict=False)
        steps = without_practice(steps).reshape(-1)
        states = steps["diversity_state"]
        if self.final_only:
            states = states[steps["done"].squeeze(-1)]
        if len(states):
            stride = -(-len(states) // MAX_REFERENCES)
            self.states[member] = states[::stride].clone()

    def of_others(self, member: int) -> list[Tensor]:
        """The states of all members but one."""
        return [states for index, states in enumerate(self.states) if index != member]

    def state_dict(self) -> dict[str, Tensor]:
        """The states by member."""
        return {str(member): states for member, states in enumerate(self.states)}

    def load_state_dict(self, state_dict: dict[str, Tensor]) -> None:
        """Takes the states over."""
        self.states = [state_dict[str(member)] for member in range(len(state_dict))]


class Population:
    """M policies that learn at the same time, with one multiplier per pair.

    Each is an :class:`~sipo_trl.training.Attempt` like those of iterative learning, whose
    references are the others' newest states instead of an archive. A pair's distance is the mean of
    both directions. (Measures that learn are not for moving references.)

    Args:
        config: the run's settings; ``iterations`` is M.
        folder: where checkpoints and metrics go.
    """

    def __init__(self, config: ITRConfig, folder: Path) -> None:
        size = config.iterations
        if size < 2:
            raise RunError(f"A population needs at least 2 policies, not iterations={size}.")
        self.config, self.progress = config, Progress()
        first, second = torch.triu_indices(size, size, offset=1)
        # pair[i, k] is the number of the pair that policy i makes with its k-th other.
        pair = torch.zeros(size, size, dtype=torch.int64)
        pair[first, second] = pair[second, first] = torch.arange(len(first))
        others = ~torch.eye(size, dtype=torch.bool)
        self.pair = pair[others].view(size, size - 1)

        seed_everything(derive_seed(config.seed, "population"))
        envs = [self._make_env(member) for member in range(size)]
        start = envs[0].reset()["diversity_state"][:1]
        measure = config.measure.make([start], horizon=config.env.horizon)
        if any(True for _ in measure.parameters()):
            raise RunError(
                f"measure={config.measure.name} learns against fixed references, which a "
                "population has not: use measure=rbf or final_state, or launch/itr.py."
            )
        self.latest = LatestStates([start] * size, final_only=measure.final_only)
        member_config = copy.deepcopy(config)
        member_config.algorithm.multiplier = replace(config.algorithm.multiplier, fixed=True)
        self.members = [
            Attempt(member_config, env, self._measure(member)) for member, env in enumerate(envs)
        ]
        settings = config.algorithm.multiplier
        self.multipliers = LagrangeMultipliers(
            len(first),
            measure.threshold(config.measure.delta),
            lr=settings.lr / config.measure.unit,
            maximum=settings.maximum,
            warmup=int(settings.warmup * self._rounds),
            initial=settings.initial,
            fixed=settings.fixed,
        )
        self.distances = torch.full_like(self.multipliers.value, torch.nan)
        folder.mkdir(parents=True, exist_ok=True)
        self.table = MetricsTable(folder / "metrics.csv")
        self.checkpoints = Checkpoints(folder / "checkpoints")
        if self.checkpoints.exist:
            self.checkpoints.load(self._components())
        self.table.cut(self.progress.updates)

    def run(self, on_update: Callable[["Population", Row], None]) -> list[Actor]:
        """Learns until the budget is spent, and returns the policies.

        Args:
            on_update: called after every round of updates; may save, and may raise to stop.
        """
        while self.progress.updates < self._rounds:
            row = self.step()
            self.table.append(row)
            on_update(self, row)
        return [member.learner.actor for member in self.members]

    label = "population"
    later = 0

    @property
    def updates(self) -> int:
        """Rounds so far."""
        return self.progress.updates

    @property
    def fraction(self) -> float:
        """How much of the budget is spent, from 0 to 1."""
        return self.progress.updates / self._rounds

    @property
    def thresholds(self) -> list[float]:
        """The bounds of the distances of all pairs."""
        return self.multipliers.threshold.tolist()

    def save(self) -> None:
        """Writes a checkpoint from which the population goes on exactly."""
        self.checkpoints.save(self._components(), step=self.progress.updates)

    def close(self) -> None:
        """Frees the environments and removes what a finished run no longer needs."""
        for member in self.members:
            member.close()
        self.checkpoints.discard()

    def step(self) -> Row:
        """One update of every policy against what the others do now, then one dual step."""
        batches = [member.collect() for member in self.members]
        for index, batch in enumerate(batches):
            self.latest.update(index, batch)
        rows = []
        for index, (member, batch) in enumerate(zip(self.members, batches, strict=True)):
            member.learner.distance.measure = self._measure(index)
            member.learner.multipliers.value.copy_(self.multipliers.value[self.pair[index]])
            rows.append(member.learn(batch))
        self.distances = distances = self._pair_distances(rows)
        multipliers = self.multipliers.update(distances)
        frames = sum(batch.numel() for batch in batches)
        self.progress.updates += 1
        self.progress.frames += frames
        returns = torch.tensor([row["return"] for row in rows])
        return {
            "frames": self.progress.frames,
            "episodes": sum(row["episodes"] for row in rows),
            "return": returns.nanmean().item(),
            **{f"return_{i}": row["return"] for i, row in enumerate(rows, start=1)},
            **{f"distance_{j}": d for j, d in enumerate(distances.tolist(), start=1)},
            **{f"multiplier_{j}": m for j, m in enumerate(multipliers.tolist(), start=1)},
        }

    def _pair_distances(self, rows: list[Row]) -> Tensor:
        """Mean of both directions for each pair; of one, or NaN, where not both are known."""
        size = len(rows)
        directed = torch.tensor([[row[f"distance_{k}"] for k in range(1, size)] for row in rows])
        both = directed.new_full((2, len(self.multipliers.value)), torch.nan)
        # A policy's k-th other comes before it in the order iff k is smaller than its own index.
        before = torch.arange(size - 1) < torch.arange(size).unsqueeze(1)
        both[before.long(), self.pair] = directed
        return both.nanmean(0)

    def _measure(self, member: int) -> StateDistanceMeasure:
        references = self.latest.of_others(member)
        return self.config.measure.make(references, horizon=self.config.env.horizon)

    def _make_env(self, member: int) -> EnvBase:
        env = self.config.make_env()
        env.set_seed(derive_seed(self.config.seed, "env", member))
        return env

    @property
    def _rounds(self) -> int:
        return self.config.budget.frames // self.config.collector.frames_per_batch

    def _components(self) -> dict[str, Any]:
        """Everything with a state; measures are made anew from the latest states."""
        components: dict[str, Any] = {
            f"member_{index}_{name}": component
            for index, member in enumerate(self.members)
            for name, component in member.components().items()
            if name != "measure"
        }
        own = {"multipliers": self.multipliers, "latest": self.latest, "progress": self.progress}
        return components | own


def run_pbt(config: ITRConfig, folder: RunFolder, reporter: Reporter) -> None:
    """Learns ``config.iterations`` policies at once and archives them.

    Started on a folder with a checkpoint in it, this goes on where that ends.

    Args:
        config: the settings.
        folder: the run's folder, locked by the caller.
        reporter: is told about every round, and saves in between.
    """
    archive = folder.archive
    if len(archive) == config.iterations:
        return
    population = Population(config, folder.path / "population")
    reporter.begin(population)
    actors = population.run(reporter.update)
    for actor in actors[len(archive) :]:
        append_entry(config, archive, actor, evaluate_entry(config, archive, actor))
    held = population.multipliers.satisfied(population.distances).sum()
    reporter.end(
        f"{len(actors)} policies: {int(held)} of {len(population.thresholds)} pairs are far "
        "enough from each other."
    )
    population.close()
