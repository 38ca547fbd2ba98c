"""What a run tells its user, and when it saves."""

import math
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Protocol, TextIO

from torchrl.record.loggers import Logger

from sipo_trl.objectives import LagrangeMultipliers
from sipo_trl.training.iteration import Outcome
from sipo_trl.training.metrics import Row


class Training(Protocol):
    """What a reporter needs to know of a training under way."""

    @property
    def label(self) -> str:
        """What is being learned, such as "policy 2/4"."""

    @property
    def later(self) -> int:
        """How many trainings of the same size follow in this run."""

    @property
    def thresholds(self) -> list[float]:
        """The bounds of its distances."""

    @property
    def updates(self) -> int:
        """Updates so far."""

    @property
    def fraction(self) -> float:
        """How much of the budget is spent, from 0 to 1."""

    def save(self) -> None:
        """Writes a checkpoint."""


class Interrupted(Exception):
    """The user asked to stop; everything is saved."""


class Reporter:
    """Shows progress with the time that is left, saves in between, and explains results.

    Keyword Args:
        save_every: seconds between two checkpoints.
        logger: where curves go beside the run folder, if anywhere.
        stream: where lines go. A terminal is rewritten in place; anything else gets a line now
            and then.
    """

    def __init__(
        self,
        *,
        save_every: float = 30.0,
        logger: Logger | None = None,
        stream: TextIO | None = None,
    ) -> None:
        self.save_every, self.logger = save_every, logger
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
            with suppress(RuntimeError):  # the signal may have come amid another line
                self.say("Stopping after this update ...")

        signals = (signal.SIGINT, signal.SIGTERM)
        before = [signal.signal(number, ask) for number in signals]
        try:
            yield
        finally:
            for number, handler in zip(signals, before, strict=True):
                signal.signal(number, handler)

    def begin(self, training: Training) -> None:
        """Is told that a training starts, or goes on after a resume."""
        self._begun = self._saved = time.monotonic()
        self._begun_at = training.fraction

    def update(self, training: Training, row: Row) -> None:
        """Is told about every update."""
        if self.logger is not None:
            curve = training.label.split("/")[0]  # the same one when a run is extended
            for name, value in row.items():
                self.logger.log_scalar(f"{curve}/{name}", value, step=training.updates)
        now = time.monotonic()
        if self._stop or now - self._saved >= self.save_every:
            training.save()
            self._saved = time.monotonic()
        if now - self._shown >= (0.2 if self.stream.isatty() else 10.0):
            self._shown = now
            self._show(self._line(training, row))
        if self._stop:
            raise Interrupted

    def end(self, sentence: str) -> None:
        """Is told how a training ended, and says so with the time that it took."""
        self._durations.append(time.monotonic() - self._begun)
        self.say(f"{sentence} ({_clock(self._durations[-1])})")

    def _line(self, training: Training, row: Row) -> str:
        """One line: how far, how long still, and how well."""
        parts = [
            training.label,
            f"{_bar(training.fraction)} {training.fraction:4.0%}",
            *self._estimate(training),
        ]
        if not row["episodes"]:
            return " | ".join([*parts, "no episode has ended in this batch"])
        parts.append(f"return {row['return']:.3g}")
        for j, bound in enumerate(training.thresholds, start=1):
            distance, multiplier = row[f"distance_{j}"], row[f"multiplier_{j}"]
            if math.isinf(bound) or math.isnan(distance):  # nothing is asked, or known yet
                continue
            holds = ">=" if distance >= bound else "<"
            parts.append(f"D{j} {distance:.3g} {holds} {bound:.3g}, lambda {multiplier:.2g}")
        return " | ".join(parts)

    def _estimate(self, training: Training) -> list[str]:
        """How long the training and the whole run still take; empty if nobody can know."""
        progress = training.fraction - self._begun_at
        if progress <= 0:
            return []
        pace = (time.monotonic() - self._begun) / progress
        left = pace * (1 - training.fraction)
        whole = left + training.later * max(self._durations[-1:], default=pace)
        return [f"ETA {_clock(left)}, run {_clock(whole)}"]

    def _show(self, line: str) -> None:
        """A line that the next one may replace."""
        if self.stream.isatty():
            # A line that wraps could not be replaced.
            width = os.get_terminal_size(self.stream.fileno()).columns - 1
            self._write(f"\r\033[K{line[:width] if width > 0 else line}")
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
    asked = [j for j, bound in enumerate(bounds) if math.isfinite(bound)]
    if not asked:
        return f"{summary}."
    nearest = min(asked, key=lambda j: distances[j] - bounds[j])
    found = f"{distances[nearest]:.3g}, at least {bounds[nearest]:.3g} wanted"
    if all(outcome.satisfied):
        return (
            f"{summary}; it keeps its distance from all earlier policies (nearest: policy "
            f"{nearest + 1} at {found})."
        )
    advice = _advise(outcome.multipliers[nearest], bounds[nearest], multipliers)
    return f"{summary}; it is too close to policy {nearest + 1} ({found}): {advice}."


def _advise(value: float, bound: float, multipliers: LagrangeMultipliers) -> str:
    """What to change about a constraint that does not hold."""
    if multipliers.fixed:
        return f"its multiplier is fixed at {value:.2g}: set a larger algorithm.multiplier.initial"
    if not math.isclose(value, multipliers.maximum):
        return (
            f"its multiplier was still at {value:.2g}: give it more budget.frames or a larger "
            "algorithm.multiplier.lr"
        )
    # A negative bound is minus the greatest similarity that is allowed.
    change = "lower" if bound > 0 else "raise"
    return (
        f"its multiplier stood at the maximum of {multipliers.maximum:g}, so this threshold seems "
        f"out of reach: {change} measure.delta, or raise measure.alpha"
    )


def _bar(fraction: float, width: int = 12) -> str:
    return "[" + ("#" * round(width * fraction)).ljust(width, ".") + "]"


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"
