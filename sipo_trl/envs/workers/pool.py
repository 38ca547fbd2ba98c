"""Copies of an environment in worker processes."""

import inspect
import os
import selectors
import weakref
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from sipo_trl.envs.workers.process import (
    BUSY,
    NOBODY,
    TODO,
    Handler,
    Layout,
    map_arrays,
)
from sipo_trl.envs.workers.worker import Worker


class WorkerPool:
    """Processes that share the copies of an environment, and arrays that all of them see.

    A worker that crashes, or makes no progress for too long, is replaced. The copy that it was
    busy with has failed; the new worker goes on with the others, from what the arrays hold. No
    worker outlives this object, or the process that holds it.

    Args:
        handler: what runs in the workers. Its module may import nothing of this package that
            imports torch.

    Keyword Args:
        copies: how many there are, N.
        workers: number of processes.
        layout: type and shape of each array's rows.
        options: what the handler is made with, beside the arrays; plain data.
        timeout: seconds without progress after which a worker counts as hanging.
        roaming: whether a copy is played by whichever worker is free, so that none waits for
            another: for copies that lie in the arrays as a whole. If not, each worker always has
            the same copies, as many as the others.
        progress: the array of numbers that change while a worker is at a copy, where that takes
            long; it is no progress but to finish a copy if ``None``.

    Attributes:
        arrays: the shared arrays [N, ...], by name.
        replaced: how many workers had to be replaced so far.
        last_words: how the last process in the place of each worker ended that was replaced.
        timeout: as above; may be changed at any time.

    Raises:
        RuntimeError: if a worker fails before it has done anything.
    """

    def __init__(
        self,
        handler: type[Handler],
        *,
        copies: int,
        workers: int,
        layout: Layout,
        options: dict[str, Any],
        timeout: float = 60.0,
        roaming: bool = False,
        progress: str | None = None,
    ) -> None:
        workers = min(workers, copies)
        self.timeout, self.replaced = timeout, 0
        self._memory = os.memfd_create("arrays")
        weakref.finalize(self, os.close, self._memory)
        self.arrays = map_arrays(self._memory, layout, copies=copies, workers=workers)
        self._todo, self._busy = self.arrays.pop(TODO), self.arrays.pop(BUSY)
        self._progress = [self._todo, *([self.arrays[progress]] if progress else [])]
        self._settings = {
            **_location(handler),
            "layout": layout,
            "copies": copies,
            "workers": workers,
            "options": options,
        }
        bounds = np.linspace(0, copies, workers + 1).round().astype(int).tolist()
        self._own = list(pairwise(bounds))
        self._rows = [(0, copies)] * workers if roaming else self._own
        self._workers = [self._start(index) for index in range(workers)]
        self.last_words = [""] * workers
        self.closed = False

    @property
    def pids(self) -> list[int]:
        """The process ids of the workers."""
        return [worker.process.pid for worker in self._workers]

    def run(self, command: int, copies: np.ndarray) -> np.ndarray:
        """Lets the workers do something to some copies, all at once, and waits for them.

        Args:
            command: from 0 to 255, for the handler.
            copies: which ones [N], bool.

        Returns:
            Which copies failed [N], bool.
        """
        if self.closed:
            raise RuntimeError("The environment was closed: make a new one.")
        self._todo[:] = copies
        failed = np.zeros_like(self._todo)
        try:
            self._work(command, failed)
        except BaseException:
            # Receipts that are still to come would be taken for those of the next command.
            self.close()
            raise
        return failed

    def close(self) -> None:
        """Ends the processes; the arrays stay."""
        self.closed = True
        for worker in self._workers:
            worker.close()

    def _work(self, command: int, failed: np.ndarray) -> None:
        with selectors.DefaultSelector() as waiting:
            for index, worker in enumerate(self._workers):
                if self._todo[worker.rows].any():
                    self._give(command, index, waiting)
            while waiting.get_map():
                before = [array.sum() for array in self._progress]
                ready = [key.data for key, _ in waiting.select(self.timeout)]
                if not ready and [array.sum() for array in self._progress] != before:
                    continue  # slow, but alive
                # Nobody has moved: all that are waited for hang.
                answered = bool(ready)
                for index in ready or [key.data for key in waiting.get_map().values()]:
                    worker = self._workers[index]
                    waiting.unregister(worker.channel)
                    if not (answered and worker.receive()):
                        self._replace(index, failed, hangs=not answered)
                        if self._todo[worker.rows].any():
                            self._give(command, index, waiting)

    def _give(self, command: int, index: int, waiting: selectors.BaseSelector) -> None:
        worker = self._workers[index]
        waiting.register(worker.channel, selectors.EVENT_READ, index)
        worker.send(command)

    def _replace(self, index: int, failed: np.ndarray, *, hangs: bool) -> None:
        """Puts a new process in place of one that is gone or hangs."""
        worker, copy = self._workers[index], int(self._busy[index])
        words = worker.last_words()
        if copy != NOBODY:
            failed[copy] = True
            self._todo[copy] = False
        elif not worker.proven:
            event = (
                f"did nothing for {self.timeout:g} s and was ended by" if hangs else "ended with"
            )
            raise RuntimeError(f"A new worker of the environment {event} {words}")
        self.replaced += 1
        self.last_words[index] = words
        self._workers[index] = self._start(index)

    def _start(self, index: int) -> Worker:
        self._busy[index] = NOBODY
        place = {"worker": index, "rows": self._rows[index], "own": self._own[index]}
        return Worker(self._memory, {**self._settings, **place})


def _location(handler: type[Handler]) -> dict[str, str]:
    """Where a new process finds a class."""
    depth = handler.__module__.count(".")
    root = Path(inspect.getfile(handler)).resolve().parents[depth]
    return {"root": str(root), "module": handler.__module__, "handler": handler.__name__}
