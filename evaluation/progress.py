"""How far long work is, on the terminal."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[int, int], None]
"""Is told how much is done, and of how much."""

# What is over sooner needs no line.
_FIRST, _EVERY = 2.0, {True: 0.2, False: 30.0}


def silent(done: int, total: int) -> None:
    """Tell nobody."""


@contextmanager
def show_progress(what: str) -> Iterator[Progress]:
    """Yield a function that is told how much is done; it speaks up once work takes seconds.

    A terminal is rewritten in place, anything else gets a line now and then.

    Args:
        what: the work's name.
    """
    stream = sys.stderr
    begun, shown = time.monotonic(), 0.0
    wide = 0

    def progress(done: int, total: int) -> None:
        nonlocal shown, wide
        now = time.monotonic()
        if now - begun < _FIRST or now - shown < _EVERY[stream.isatty()] or not done:
            return
        shown = now
        left = (now - begun) / done * (total - done)
        line = f"{what}: {100 * done // total} %, {left:.0f} s left"
        wide = max(wide, len(line))
        stream.write(f"\r{line.ljust(wide)}" if stream.isatty() else f"{line}\n")
        stream.flush()

    yield progress
    if wide and stream.isatty():
        stream.write(f"\r{' ' * wide}\r")
