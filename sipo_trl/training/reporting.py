"""What a run tells its user, and when it saves."""

import math
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TextIO

from torchrl.record.loggers import Logger

from sipo_trl.objectives import LagrangeMultipliers
from sipo_trl.training.iteration import Iteration, Outcome
from sipo_trl.training.metrics import Row


class Interrupted(Exception):
    """The user asked to stop; everything is saved."""


class Reporter:
    """Shows progress with the time that is left, saves in between, and explains results.

    Args:
        iterations: how many policies the run is to have.

    Keyword Args:
        save_every: seconds between two checkpoints.
        logger: where curves go beside the run folder, if anywhere.
        stream: where lines go. A terminal is rewritten in place; anything else gets a line now
            and then.
    """

    def __init__(
        self,
        iterations: int,
        *,
        save_every: float = 30.0,
        logger: Logger | None = None,
        stream: TextIO | None = None,
    ) -> None:
        self.iterations, self.save_every, self.logger = iterations, save_every, logger
        self.stream = stream or sys.stdout
        self._stop = False
        self._begun = self._saved = self._shown = time.monotonic()
        self._begun_at = 0.0
        self._durations: list[float] = []

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Within, Ctrl-C and SIGTERM save and stop at the next update instead of at once."""

        def ask(number: int, frame: FrameType | None) -> None:
            if self._stop:  # asked twice: the user is in a hurry
                raise KeyboardInterrupt
            self._stop = True
            self.say("Stopping after this update ...")

        signals = (signal.SIGINT, signal.SIGTERM)
        before = [signal.signal(number, ask) for number in signals]
        try:
            yield
        finally:
            for number, handler in zip(signals, before, strict=True):
                signal.signal(number, handler)

    def begin(self, iteration: Iteration) -> None:
        """Is told that an iteration starts, or goes on after a resume."""
        self._begun = self._saved = time.monotonic()
        self._begun_at = self._fraction(iteration)

    def update(self, iteration: Iteration, row: Row) -> None:
        """Is told about every update."""
        if self.logger is not None:
            for name, value in row.items():
                step = iteration.progress.updates
                self.logger.log_scalar(f"policy_{iteration.index + 1}/{name}", value, step=step)
        now = time.monotonic()
        if self._stop or now - self._saved >= self.save_every:
            iteration.save()
            self._saved = time.monotonic()
        if now - self._shown >= (0.2 if self.stream.isatty() else 10.0):
            self._shown = now
            self._show(self._line(iteration, row))
        if self._stop:
            raise Interrupted

    def end(self, iteration: Iteration, outcome: Outcome) -> None:
        """Is told how an iteration ended, and says so in a plain sentence."""
        self._durations.append(time.monotonic() - self._begun)
        sentence = explain(iteration.index, outcome, iteration.attempt.learner.multipliers)
        self.say(f"{sentence} ({_clock(self._durations[-1])})")

    def _line(self, iteration: Iteration, row: Row) -> str:
        """One line: how far, how long still, and how well."""
        done, elapsed = self._fraction(iteration), time.monotonic() - self._begun
        pace = elapsed / max(done - self._begun_at, 1e-9)
        left = pace * (1 - done)
        later = self.iterations - iteration.index - 1
        whole = left + later * max([*self._durations[-1:], pace * (1 - self._begun_at)], default=0)
        parts = [
            f"policy {iteration.index + 1}/{self.iterations}",
            f"{_bar(done)} {done:4.0%}",
            f"ETA {_clock(left)}, run {_clock(whole)}",
        ]
        if not row["episodes"]:
            return " | ".join([*parts, "no episode has ended in this batch"])
        parts.append(f"return {row['return']:.3g}")
        for j, bound in enumerate(iteration.attempt.learner.multipliers.threshold.tolist(), 1):
            distance, multiplier = row[f"distance_{j}"], row[f"multiplier_{j}"]
            holds = ">=" if distance >= bound else "<"
            parts.append(f"D{j} {distance:.3g} {holds} {bound:.3g}, lambda {multiplier:.2g}")
        return " | ".join(parts)

    @staticmethod
    def _fraction(iteration: Iteration) -> float:
        return min(iteration.progress.frames / iteration.config.budget.frames, 1.0)

    def _show(self, line: str) -> None:
        """A line that the next one may replace."""
        if self.stream.isatty():
            self._write(f"\r\033[K{line}")
        else:
            self._write(f"{line}\n")

    def say(self, sentence: str) -> None:
        """A line that stays."""
        start = "\r\033[K" if self.stream.isatty() else ""
        self._write(f"{start}{sentence}\n")

    def _write(self, text: str) -> None:
        self.stream.write(text)
        self.stream.flush()


def explain(index: int, outcome: Outcome, multipliers: LagrangeMultipliers) -> str:
    """What became of a policy, and what to change if it is not what was wanted.

    Args:
        index: which policy, counted from 0.
        outcome: how its iteration ended.
        multipliers: its constraints.
    """
    metrics = outcome.evaluation.metrics()
    summary = (
        f"Policy {index + 1}: return {metrics['return']:.3g}, success {metrics['success']:.0%}"
    )
    if not outcome.solved:
        summary += ", which does not solve the task: give it more budget.frames"
    distances, bounds = outcome.evaluation.distances.tolist(), multipliers.threshold.tolist()
    if not distances:
        return f"{summary}."
    missed = [j for j, holds in enumerate(outcome.satisfied) if not holds]
    if not missed:
        nearest = min(range(len(distances)), key=lambda j: distances[j] - bounds[j])
        return (
            f"{summary}; it keeps its distance from all earlier policies (nearest: policy "
            f"{nearest + 1} at {distances[nearest]:.3g}, at least {bounds[nearest]:.3g} wanted)."
        )
    j = max(missed, key=lambda j: bounds[j] - distances[j])
    pinned = math.isclose(outcome.multipliers[j], multipliers.maximum)
    advice = (
        f"its multiplier stood at the maximum of {multipliers.maximum:g}, so this threshold seems "
        "out of reach: lower measure.delta, or raise measure.alpha"
        if pinned
        else f"its multiplier was still at {outcome.multipliers[j]:.2g}: give it more "
        "budget.frames or a larger algorithm.multiplier.lr"
    )
    return (
        f"{summary}; it is too close to policy {j + 1} ({distances[j]:.3g}, at least "
        f"{bounds[j]:.3g} wanted): {advice}."
    )


def _bar(fraction: float, width: int = 12) -> str:
    return "[" + ("#" * round(width * fraction)).ljust(width, ".") + "]"


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"
