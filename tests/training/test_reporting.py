import io
import os
import re
import signal
import termios
from dataclasses import dataclass, field

import pytest
import torch
from tensordict import TensorDict

from sipo_trl.objectives import LagrangeMultipliers
from sipo_trl.training import Evaluation, Interrupted, Outcome, Reporter, reporting
from sipo_trl.training.reporting import explain

ROW = {"episodes": 3, "return": 0.51234}


@dataclass
class Training:
    """A training that only pretends."""

    label: str = "policy 2/4"
    later: int = 2
    thresholds: list[float] = field(default_factory=list)
    updates: int = 0
    fraction: float = 0.0
    saved: int = 0

    def save(self) -> None:
        self.saved += 1


class Terminal(io.StringIO):
    """A terminal of 60 columns, which is what the pseudo-terminal behind it has."""

    def __init__(self) -> None:
        super().__init__()
        self.other_end, self.end = os.openpty()
        termios.tcsetwinsize(self.end, (24, 60))

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return self.end

    def close(self) -> None:
        os.close(self.end)
        os.close(self.other_end)
        super().close()


class Curves:
    """A logger that remembers."""

    def __init__(self) -> None:
        self.points: list[tuple[str, float, int]] = []

    def log_scalar(self, name: str, value: float, step: int) -> None:
        self.points.append((name, value, step))


@pytest.fixture
def clock(monkeypatch) -> list[float]:
    """The time, as a list of one number that tests set."""
    now = [1000.0]
    monkeypatch.setattr(reporting.time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def terminal():
    with Terminal() as stream:
        yield stream


def line(reporter: Reporter, training: Training, row: dict[str, float], clock: list[float]) -> str:
    """What is shown after so long that something is."""
    clock[0] += 100
    reporter.update(training, row)
    return reporter.stream.getvalue().splitlines()[-1]


def test_the_line_tells_how_far_how_long_and_how_well(clock) -> None:
    reporter, training = Reporter(stream=io.StringIO()), Training(thresholds=[0.4, -0.1])
    reporter.begin(training)
    training.fraction = 0.25
    row = {
        **ROW,
        "distance_1": 0.5,
        "multiplier_1": 0.0,
        "distance_2": -0.23456,
        "multiplier_2": 9.87,
    }
    # 100 s for a quarter: 300 s are left of this training, and two more take 400 s each.
    assert line(reporter, training, row, clock) == (
        "policy 2/4 | [###.........]  25% | ETA 5:00, run 18:20 | return 0.512"
        " | D1 0.5 >= 0.4, lambda 0 | D2 -0.235 < -0.1, lambda 9.9"
    )
    reporter.end("Policy 2 is there.")
    assert reporter.stream.getvalue().endswith("Policy 2 is there. (1:40)\n")
    training.fraction = 0.0
    reporter.begin(training)
    training.fraction = 0.5
    # Later trainings are now expected to take as long as the one that ended: 100 s each.
    assert "ETA 1:40, run 5:00" in line(reporter, training, row, clock)


def test_hours_are_shown_as_such(clock) -> None:
    reporter, training = Reporter(stream=io.StringIO()), Training(later=0)
    reporter.begin(training)
    training.fraction = 0.01
    clock[0] += 3600
    assert "ETA 101:45:00, run 101:45:00" in line(reporter, training, ROW, clock)


def test_the_pace_is_that_since_the_resume(clock) -> None:
    reporter, training = Reporter(stream=io.StringIO()), Training(later=0, fraction=0.8)
    reporter.begin(training)
    training.fraction = 0.9
    assert "ETA 1:40, run 1:40" in line(reporter, training, ROW, clock)
    assert "ETA" not in line(reporter, Training(fraction=0.8), ROW, clock)  # nothing done yet


def test_nothing_unknown_is_shown(clock) -> None:
    nan, reporter = float("nan"), Reporter(stream=io.StringIO())
    training = Training(fraction=0.5, thresholds=[0.4, 0.4, float("-inf")])
    row = {"episodes": 0, "return": nan, "distance_1": nan, "multiplier_1": 0.0}
    shown = line(reporter, training, row, clock)
    assert shown.endswith("| no episode has ended in this batch")
    row = {
        **ROW,
        "distance_1": nan,  # no episode of this pair of policies has ended yet
        "multiplier_1": 0.0,
        "distance_2": 0.5,
        "multiplier_2": 0.0,
        "distance_3": 0.0,  # nothing is asked of this one
        "multiplier_3": 0.0,
    }
    shown += line(reporter, training, row, clock)
    assert "D2 0.5" in shown
    assert not re.search("nan|inf|D1|D3", shown)


def test_a_file_gets_whole_lines_now_and_then(clock) -> None:
    reporter, training = Reporter(stream=io.StringIO()), Training(fraction=0.5)
    reporter.begin(training)
    for _ in range(99):
        clock[0] += 1
        reporter.update(training, ROW)
    reporter.say("Done.")
    text = reporter.stream.getvalue()
    assert len(text.splitlines()) == 9 + 1
    assert "\r" not in text
    assert "\033" not in text


def test_a_terminal_gets_one_line_that_is_replaced_and_never_wraps(clock, terminal) -> None:
    reporter = Reporter(stream=terminal)
    training = Training(fraction=0.5, thresholds=[0.4] * 5)
    distances = {f"distance_{j}": 0.5 for j in range(1, 6)}
    row = {**ROW, **distances, **{f"multiplier_{j}": 0.0 for j in range(1, 6)}}
    for _ in range(3):
        clock[0] += 0.1
        reporter.update(training, row)
        clock[0] += 0.2
        reporter.update(training, row)
    reporter.say("Done, and this may be longer than the terminal is wide because it stays there.")
    *shown, last = terminal.getvalue().split("\r\033[K")[1:]
    assert len(shown) == 3
    assert all("\n" not in one and len(one) == 59 for one in shown)
    assert last.endswith("stays there.\n")


def test_it_saves_every_so_often(clock) -> None:
    reporter, training = Reporter(save_every=30, stream=io.StringIO()), Training()
    reporter.begin(training)
    for _ in range(100):
        clock[0] += 1
        reporter.update(training, ROW)
    assert training.saved == 3


def test_curves_keep_their_names_when_a_run_is_extended() -> None:
    reporter = Reporter(stream=io.StringIO(), logger=Curves())
    for label in ("policy 2/4", "policy 2/9"):
        reporter.update(Training(label=label, updates=7), ROW)
    expected = [("policy 2/episodes", 3, 7), ("policy 2/return", 0.51234, 7)]
    assert reporter.logger.points == 2 * expected


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_request_to_stop_saves_first_and_a_second_one_stops_at_once(number) -> None:
    before = signal.getsignal(number)
    reporter, training = Reporter(stream=io.StringIO()), Training()
    with reporter.interruptible():
        reporter.update(training, ROW)
        assert training.saved == 0
        signal.raise_signal(number)
        assert reporter.stream.getvalue() == "Stopping after this update ...\n"
        with pytest.raises(Interrupted):
            reporter.update(training, ROW)
        assert training.saved == 1
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
    assert signal.getsignal(number) is before


def test_a_request_to_stop_amid_a_line_is_heard(monkeypatch) -> None:
    reporter = Reporter(stream=io.StringIO())

    def reentrant(text: str) -> None:
        raise RuntimeError("reentrant call inside <_io.BufferedWriter>")

    monkeypatch.setattr(reporter.stream, "write", reentrant)
    with reporter.interruptible():
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(Interrupted):
            reporter.update(Training(), ROW)


def outcome(
    distances: list[float],
    multipliers: LagrangeMultipliers,
    *,
    solved: bool = True,
    values: list[float] | None = None,
) -> Outcome:
    """A policy that succeeds in one of two episodes, at some distances."""
    found = torch.tensor(distances)
    evaluation = Evaluation(
        columns=TensorDict(),
        returns=torch.tensor([0.25, 0.75]),
        success=torch.tensor([True, False]),
        lengths=torch.tensor([3, 4]),
        distances=found,
    )
    return Outcome(
        actor=None,
        evaluation=evaluation,
        solved=solved,
        satisfied=multipliers.satisfied(found).tolist(),
        multipliers=values or multipliers.value.tolist(),
    )


def test_a_first_policy_is_summed_up() -> None:
    none = LagrangeMultipliers(0, 0.4)
    assert explain(0, outcome([], none), none) == "Policy 1: return 0.5, success 50%."
    assert explain(0, outcome([], none, solved=False), none) == (
        "Policy 1: return 0.5, success 50%, which does not solve the task: give it more "
        "budget.frames."
    )


def test_a_constraint_that_asks_nothing_is_not_mentioned() -> None:
    free = LagrangeMultipliers(2, float("-inf"))
    assert explain(2, outcome([0.0, 0.0], free), free) == "Policy 3: return 0.5, success 50%."


def test_the_nearest_policy_is_named() -> None:
    multipliers = LagrangeMultipliers(3, [0.4, 0.1, 0.4])
    assert explain(3, outcome([0.9, 0.2, 0.6], multipliers), multipliers) == (
        "Policy 4: return 0.5, success 50%; it keeps its distance from all earlier policies "
        "(nearest: policy 2 at 0.2, at least 0.1 wanted)."
    )


def test_the_policy_that_is_worst_missed_is_named_with_what_to_change() -> None:
    multipliers = LagrangeMultipliers(3, [0.4, 0.4, 0.4])
    text = explain(3, outcome([0.3, 0.9, 0.1], multipliers, values=[1, 0, 2.345]), multipliers)
    assert text == (
        "Policy 4: return 0.5, success 50%; it is too close to policy 3 (0.1, at least 0.4 "
        "wanted): its multiplier was still at 2.3: give it more budget.frames or a larger "
        "algorithm.multiplier.lr."
    )


@pytest.mark.parametrize(("bound", "change"), [(0.4, "lower"), (-0.1, "raise")])
def test_an_infeasible_threshold_is_said_to_be_so(bound: float, change: str) -> None:
    multipliers = LagrangeMultipliers(1, bound, maximum=8.0)
    text = explain(1, outcome([bound - 0.1], multipliers, values=[8.0]), multipliers)
    assert text == (
        f"Policy 2: return 0.5, success 50%; it is too close to policy 1 ({bound - 0.1:.3g}, at "
        f"least {bound:g} wanted): its multiplier stood at the maximum of 8, so this threshold "
        f"seems out of reach: {change} measure.delta, or raise measure.alpha."
    )


def test_a_fixed_multiplier_is_not_expected_to_move() -> None:
    multipliers = LagrangeMultipliers(1, 0.4, initial=0.2, fixed=True)
    text = explain(1, outcome([0.1], multipliers), multipliers)
    assert text.endswith(
        "its multiplier is fixed at 0.2: set a larger algorithm.multiplier.initial."
    )
