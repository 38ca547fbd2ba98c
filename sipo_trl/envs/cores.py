"""How much of the machine is ours."""

import os


def all_cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):  # on Linux, where containers restrict it
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
