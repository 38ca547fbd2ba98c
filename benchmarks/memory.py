"""Memory, from Linux's own books, in processes of their own.

Pages of a memory-mapped archive are the system's file cache, which it drops when memory is short:
they are no cost of ours. What counts is anonymous memory, ``RssAnon`` in ``/proc/self/status``;
its peak is found by a thread that looks every millisecond, because the system's own high-water
mark (``VmHWM``) has mapped files in it.
"""

import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Literal, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_PERIOD = 1e-3


def resident(kind: Literal["RssAnon", "VmRSS"]) -> int:
    """Return the bytes that this process has in memory: anonymous ones, or all.

    Example:
        >>> 0 < resident("RssAnon") <= resident("VmRSS")
        True
    """
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == kind:
            return int(value.removesuffix("kB")) * 1024
    raise OSError(f"/proc/self/status has no {kind}: memory is measured on Linux 4.5 or newer.")


def peak_anonymous(call: Callable[[], object]) -> int:
    """Return by how many bytes anonymous memory rose at most while a function ran.

    Linux counts on each core and adds up now and then: a few hundred kilobytes may be missing. What
    the process frees meanwhile is missing too, so call it where nothing else happens.

    Example:
        >>> peak_anonymous(lambda: bytearray(400_000_000)) > 200_000_000
        True
    """
    start = peak = end = resident("RssAnon")
    finished = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not finished.wait(_PERIOD):
            peak = max(peak, resident("RssAnon"))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        result = call()
        end = resident("RssAnon")  # not into the peak, which the other thread may be about to set
        del result
    finally:
        finished.set()
        watcher.join()
    return max(peak, end) - start


def in_fresh_process(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function of a module where nobody has used any memory yet."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *args, **kwargs).result()
