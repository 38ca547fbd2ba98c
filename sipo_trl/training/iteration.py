"""One iteration: the archive's next policy, learned within a budget of frames."""

import math
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from sipo_trl.archive import Archive
from sipo_trl.models import Actor, build_actor
from sipo_trl.training.attempt import Attempt
from sipo_trl.training.checkpoints import Checkpoints
from sipo_trl.training.config import ITRConfig
from sipo_trl.training.entry import evaluate_entry
from sipo_trl.training.evaluation import Evaluation
from sipo_trl.training.metrics import MetricsTable, Row
from sipo_trl.training.progress import Progress
from sipo_trl.training.seeds import derive_seed, seed_everything

CHECKPOINTS = "checkpoints"


@dataclass
class Outcome:
    """The policy that an iteration ends with.

    Attributes:
        actor: the policy.
        evaluation: its episodes.
        solved: whether its return passes the environment's mark; ``True`` if there is none.
        satisfied: for each constraint, whether it holds [J].
        multipliers: where the multipliers stood when the attempt ended [J].
    """

    actor: Actor
    evaluation: Evaluation
    solved: bool
    satisfied: list[bool]
    multipliers: list[float]

    @property
    def accepted(self) -> bool:
        """Whether the policy is good and different."""
        return self.solved and all(self.satisfied)

    @property
    def score(self) -> tuple[int, float]:
        """What one of several attempts is chosen by."""
        return self.solved + all(self.satisfied), self.evaluation.returns.mean().item()


class Iteration:
    """Learns one policy that solves the task away from all archived ones.

    An attempt ends when it has held for ``algorithm.settle`` updates and an evaluation confirms
    it, or when its share of the budget is spent. It may exceed its share if most of its episodes
    are good and different already, or if it is good for so many updates and multipliers still rise
    to make it different. An attempt whose policy is no good, or not different, is given up for a
    fresh one while the budget lasts. In the end the best policy on the way counts: a rising
    multiplier may have driven the last one away from all that it could do. Where no mark says when
    a policy is good enough, it has to return at least as much as the last one. With
    ``algorithm.tries=1`` and ``settle=0`` this is the paper's single training and its last policy.

    Args:
        config: the run's settings.
        archive: the earlier policies.
        folder: where checkpoints and metrics go.
    """

    def __init__(self, config: ITRConfig, archive: Archive, folder: Path) -> None:
        self.config, self.archive = config, archive
        self.index = len(archive)
        self.progress = Progress()
        folder.mkdir(parents=True, exist_ok=True)
        self.table = MetricsTable(folder / "metrics.csv")
        self.checkpoints = Checkpoints(folder / CHECKPOINTS)
        self.best: Actor | None = None
        self.attempt = self._resume() or self._begin_attempt()

    def run(self, on_update: Callable[["Iteration", Row], None]) -> Outcome:
        """Learns until the policy is accepted or the budget spent.

        Args:
            on_update: called after every update; may save, and may raise to stop.
        """
        while True:
            # The end of an attempt is looked for first: a checkpoint may be its last update's.
            if self._attempt_ends():
                outcome = self._confirm()
                if outcome is not None:
                    return outcome
            row = self._update()
            on_update(self, row)

    def _confirm(self) -> Outcome | None:
        """Evaluates an attempt that seems to be over; ``None`` if there is more to do."""
        outcome = self.evaluate(self.attempt.learner.actor)
        self.progress.held = 0
        if outcome.accepted:
            return outcome
        if self._attempt_spent():
            if self.best is not None:
                outcome = self._better(outcome, self.evaluate(self.best))
            if outcome.accepted or not self._attempts_left():
                return outcome
            self._keep(outcome.actor, outcome.score)
            self.progress.attempt += 1
            self.attempt.close()
            self.attempt = self._begin_attempt()
        return None

    def _better(self, last: Outcome, earlier: Outcome) -> Outcome:
        """The one that counts.

        Where no mark says which return is good, distance makes up for none of it: who fails at
        once is far from everybody.
        """
        returns = [outcome.evaluation.returns.mean() for outcome in (last, earlier)]
        if self.config.env.solved is None and returns[0] > returns[1]:
            return last
        return max(last, earlier, key=lambda one: one.score)

    @property
    def label(self) -> str:
        """Which policy of how many."""
        return f"policy {self.index + 1}/{self.config.iterations}"

    @property
    def later(self) -> int:
        """How many iterations follow."""
        return self.config.iterations - self.index - 1

    @property
    def updates(self) -> int:
        """Updates so far, in all attempts."""
        return self.progress.updates

    @property
    def fraction(self) -> float:
        """How much of the budget is spent, from 0 to 1."""
        return min(self.progress.frames / self.config.budget.frames, 1.0)

    @property
    def thresholds(self) -> list[float]:
        """The bounds of the distances to the archived policies."""
        return self.attempt.learner.multipliers.threshold.tolist()

    def save(self) -> None:
        """Writes a checkpoint from which the iteration goes on exactly."""
        self.checkpoints.save(self._components(), step=self.progress.updates)

    def evaluate(self, actor: Actor) -> Outcome:
        """Plays whole episodes with a policy, the same ones whenever it is asked."""
        evaluation = evaluate_entry(self.config, self.archive, actor)
        self.progress.frames += evaluation.frames
        multipliers = self.attempt.learner.multipliers
        return Outcome(
            actor,
            evaluation,
            solved=self._solved(evaluation.returns.mean().item()),
            satisfied=multipliers.satisfied(evaluation.distances).tolist(),
            multipliers=multipliers.value.tolist(),
        )

    def _update(self) -> Row:
        row = self.attempt.step()
        frames = int(row.pop("frames"))
        progress = self.progress
        progress.updates += 1
        progress.frames += frames
        progress.attempt_frames += frames
        self._judge(row)
        row = {"attempt": progress.attempt, "frames": progress.frames, **row}
        self.table.append(row)
        return row

    def _judge(self, row: Row) -> None:
        """Takes note of how this update's episodes did, and keeps the policy if none did better."""
        config, progress = self.config, self.progress
        multipliers = self.attempt.learner.multipliers
        distances = [row[f"distance_{j}"] for j in range(1, self.index + 1)]
        satisfied = multipliers.satisfied(torch.tensor(distances, device=multipliers.value.device))
        solved, different = self._solved(row["return"]), bool(satisfied.all())
        holds = config.env.solved is not None and solved and different
        progress.held = progress.held + 1 if holds else 0
        progress.solved = progress.solved + 1 if solved else 0
        pressed = self._settled(progress.solved) and self._can_be_pressed(satisfied)
        progress.promising = row["good"] > 0.5 or pressed
        score = solved + different, row["return"]
        better = score > (progress.best_level, progress.best_return)
        if config.algorithm.settle and better and not math.isnan(row["return"]):
            self._keep(deepcopy(self.attempt.learner.actor), score)

    def _settled(self, updates: int) -> bool:
        """Whether what has held for so many updates in a row is taken for granted."""
        return 0 < self.config.algorithm.settle <= updates

    def _can_be_pressed(self, satisfied: Tensor) -> bool:
        """Whether each multiplier [J] whose constraint does not hold can still rise."""
        multipliers = self.attempt.learner.multipliers
        can_rise = (multipliers.value < multipliers.maximum) & (not multipliers.fixed)
        return bool((satisfied | can_rise).all())

    def _keep(self, actor: Actor, score: tuple[int, float]) -> None:
        self.best = actor
        self.progress.best_level, self.progress.best_return = score

    def _solved(self, task_return: float) -> bool:
        mark = self.config.env.solved
        return mark is None or task_return >= mark

    def _attempt_ends(self) -> bool:
        return self._settled(self.progress.held) or self._attempt_spent()

    def _attempt_spent(self) -> bool:
        """Whether another batch would exceed its share, unless promising, or all that is left."""
        progress, batch = self.progress, self.config.collector.frames_per_batch
        share_spent = progress.attempt_frames + batch > self._share and not progress.promising
        return share_spent or progress.frames + batch > self.config.budget.frames

    def _attempts_left(self) -> bool:
        """Whether at least half a share is left: less is not worth a beginning."""
        return self.config.budget.frames - self.progress.frames >= self._share / 2

    @property
    def _share(self) -> int:
        """The frames of one attempt: all where no mark says when a policy is good enough."""
        config = self.config
        return config.budget.frames // (1 if config.env.solved is None else config.algorithm.tries)

    def _begin_attempt(self) -> Attempt:
        """A fresh attempt, whose course depends on the seed, the archive and its number only."""
        config = self.config
        self.progress.attempt_frames = self.progress.held = self.progress.solved = 0
        self.progress.promising = False
        seed_everything(derive_seed(config.seed, self.index, self.progress.attempt))
        env = config.make_env()
        env.set_seed(derive_seed(config.seed, "env", self.index, self.progress.attempt))
        return Attempt(config, env, config.make_measure(self.archive))

    def _resume(self) -> Attempt | None:
        """The attempt under way in the last checkpoint, if there is one."""
        if not self.checkpoints.exist:
            self.table.cut(0)
            return None
        self.checkpoints.load({"progress": self.progress})
        self.table.cut(self.progress.updates)
        self.attempt = self._begin_attempt()
        if "best" in self.checkpoints.names:
            self.best = build_actor(**self.attempt.learner.actor.policy_spec["kwargs"])
        self.checkpoints.load(self._components())
        return self.attempt

    def _components(self) -> dict[str, Any]:
        components = {**self.attempt.components(), "progress": self.progress}
        return components if self.best is None else {**components, "best": self.best}


def discard_checkpoints(folder: Path) -> None:
    """Removes what a finished iteration no longer needs; its metrics stay."""
    Checkpoints(folder / CHECKPOINTS).discard()
