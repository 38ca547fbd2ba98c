"""What workers do in the tests: count, and fail in several ways."""

import os
import sys
import time

import numpy as np

COUNT, REPORT_TORCH = range(2)
WELL, CRASH, HANG, CRASH_LATER, LAST, SLOW = range(6)

LAYOUT = {"count": ("i8", ()), "health": ("i8", ()), "pair": ("f4", (2,))}


class Counting:
    def __init__(self, arrays: dict[str, np.ndarray], *, step: int) -> None:
        if step == 0:
            sys.exit("cannot count in steps of 0")
        self.arrays, self.step = arrays, step

    def run(self, command: int, copy: int) -> None:
        if command == REPORT_TORCH:
            self.arrays["count"][copy] = "torch" in sys.modules
            return
        health = self.arrays["health"][copy]
        if health == CRASH:
            os.abort()
        if health == HANG:
            sum(range(10**15))  # as an engine does: without letting go of the interpreter's lock
        for _ in range(8 if health == SLOW else 0):
            self.arrays["pair"][copy] += 1
            time.sleep(0.4)
        while health == LAST and not np.delete(self.arrays["count"], copy).all():
            pass
        self.arrays["count"][copy] += self.step

    def idle(self, own: range) -> bool:
        if (self.arrays["health"][own] == CRASH_LATER).any():
            self.arrays["health"][own] = WELL
            os.abort()
        return False
