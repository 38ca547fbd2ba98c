"""CPU time of ours and of a peer, in turns.

Other processes slow a machine down, now more, now less. So what is compared is run in turns, what
is compared in each round is their ratio there, and what is reported is the median of the ratios.
CPU time leaves out the time in which others had the core, though not what they do to its cache.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from benchmarks.table import Row

Call = Callable[[], object]

# Shorter calls are repeated, so that a round is long beside what it takes to look at the clock.
_SHORTEST = 0.02


def in_turns(
    calls: Mapping[str, Call], *, rounds: int, clock: Callable[[], float] = time.process_time
) -> dict[str, list[float]]:
    """Measure the seconds of one call of each function, round by round.

    Args:
        calls: the functions, by name. All are called before anything is measured.
        rounds: how often each is measured. Every other round goes backwards, so that nobody
            always profits from who was before.
        clock: what is measured: CPU time, unless what is compared uses several cores.

    Example:
        >>> times = in_turns({"sum": lambda: sum(range(1000)), "nothing": lambda: None}, rounds=3)
        >>> {name: len(seconds) for name, seconds in times.items()}
        {'sum': 3, 'nothing': 3}
    """
    for call in calls.values():
        call()
    repeats = {
        name: max(1, math.ceil(_SHORTEST / max(_seconds(call, 1, clock), 1e-6)))
        for name, call in calls.items()
    }
    times: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(rounds):
        for name in list(calls)[:: 1 if number % 2 == 0 else -1]:
            times[name].append(_seconds(calls[name], repeats[name], clock))
    return times


def compare(
    what: str, ours: Call, peer: str, theirs: Call, *, rounds: int, most_ratio: float | None = None
) -> Row:
    """Measure ours and a peer's CPU time in turns.

    Args:
        what: the thing measured, with its sizes.
        ours: does it our way.
        peer: what ours is compared with.
        theirs: does it the peer's way.
        rounds: how often to measure.
        most_ratio: the greatest ratio of ours by theirs that is good enough.
    """
    times = in_turns({"ours": ours, "theirs": theirs}, rounds=rounds)
    return make_row(what, times["ours"], peer, times["theirs"], most_ratio=most_ratio)


def make_row(
    what: str,
    ours: Sequence[float],
    peer: str,
    theirs: Sequence[float],
    *,
    unit: Literal["s", "B"] = "s",
    most_ratio: float | None = None,
    most: float | None = None,
) -> Row:
    """Sum up what was measured round by round; the arguments are those of :class:`Row`.

    Example:
        >>> row = make_row("sum", [1.0, 9.0, 2.0], "loop", [2.0, 9.0, 2.0], most_ratio=1.1)
        >>> row.ours, row.theirs, row.ratio, row.spread
        (2.0, 2.0, 1.0, (0.75, 1.0))
    """
    ratios = [our / their for our, their in zip(ours, theirs, strict=True)]
    low, middle, high = np.quantile(ratios, [0.25, 0.5, 0.75]).tolist()
    return Row(
        what=what,
        ours=median(ours),
        peer=peer,
        theirs=median(theirs),
        ratio=middle,
        spread=(low, high),
        unit=unit,
        most_ratio=most_ratio,
        most=most,
    )


def check_equal(what: str, ours: Tensor, theirs: Tensor, *, rtol: float, atol: float = 0.0) -> None:
    """Raise unless both give the same numbers: the time of a wrong answer is worth nothing.

    Example:
        >>> check_equal("sum", torch.tensor(1.0), torch.tensor(1.001), rtol=1e-2)
    """
    torch.testing.assert_close(
        ours,
        theirs,
        rtol=rtol,
        atol=atol,
        msg=lambda text: f"{what}: ours and the peer's answers differ. {text}",
    )


def _seconds(call: Call, repeats: int, clock: Callable[[], float]) -> float:
    start = clock()
    for _ in range(repeats):
        call()
    return (clock() - start) / repeats
