"""What a worker does: :class:`~sipo_trl.envs.workers.WorkerPool` starts this file as a script.

Arrays are exchanged in memory that all processes map; a socket carries one command at a time and
its receipt. Nothing here, and nothing that a handler imports, may need torch: a worker is to be
small and to start at once.
"""

from __future__ import annotations

import fcntl
import importlib
import json
import mmap
import os
import select
import signal
import socket
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import numpy as np

Arrays = dict[str, np.ndarray]
Layout = Mapping[str, tuple[str, Sequence[int]]]

RECEIPT = b"."
NOBODY = -1
# Copies are taken one after another, so that it is known at which one a worker failed.
TODO, BUSY = "_todo", "_busy"


class Handler(Protocol):
    """Looks after some copies of an environment in a worker.

    It is made with the rows of the shared arrays that it may be asked for, one per copy, and with
    options that JSON can hold. What it needs to go on after the worker had to be replaced, or what
    another worker needs where copies are shared, belongs into the arrays.
    """

    def __init__(self, arrays: Arrays, **options: Any) -> None: ...

    def run(self, command: int, copy: int) -> None:
        """Does to one copy what the environment asks for."""

    def idle(self, own: range) -> bool:
        """Uses a pause for a piece of work that will be needed; ``False`` if there is none.

        Args:
            own: the copies that no other worker prepares anything for.
        """


def map_arrays(descriptor: int, layout: Layout, *, copies: int, workers: int) -> Arrays:
    """The shared arrays by name, the pool's own two among them.

    Args:
        descriptor: of the memory, which becomes as large as it has to be.
        layout: type and shape of each array's rows.
        copies: number of rows.
        workers: number of processes.
    """
    columns: list[Any] = [(name, kind, (copies, *shape)) for name, (kind, shape) in layout.items()]
    columns += [(TODO, "?", (copies,)), (BUSY, "i8", (workers,))]
    record = np.dtype(columns, align=True)
    os.ftruncate(descriptor, record.itemsize)
    whole = np.frombuffer(mmap.mmap(descriptor, record.itemsize), record)
    return {name: whole[name][0] for name in record.names or ()}


def main() -> None:
    """Makes the handler, then does as it is told until the other end is closed."""
    settings = json.loads(sys.argv[1])
    del sys.path[0]  # where there are modules with names like process
    _die_with(settings["lifeline"])
    channel = socket.socket(fileno=settings["channel"])
    arrays = map_arrays(
        settings["memory"],
        settings["layout"],
        copies=settings["copies"],
        workers=settings["workers"],
    )
    rows = slice(*settings["rows"])
    todo, busy = arrays.pop(TODO), arrays.pop(BUSY)
    make = _find(settings["root"], settings["module"], settings["handler"])
    handler = make({name: array[rows] for name, array in arrays.items()}, **settings["options"])
    copies = Copies(settings["memory"], todo, busy, rows=rows, worker=settings["worker"])
    own = range(*(bound - rows.start for bound in settings["own"]))
    serve(handler, channel, copies, own)


class Copies:
    """Gives this worker one copy after another of those that are to do and that nobody is at.

    Args:
        memory: descriptor of the shared memory, which is locked meanwhile.
        todo: which copies are left [N].
        busy: the copy that each worker is at [W].

    Keyword Args:
        rows: those that this worker may take.
        worker: its number.
    """

    def __init__(
        self, memory: int, todo: np.ndarray, busy: np.ndarray, *, rows: slice, worker: int
    ) -> None:
        self.memory, self.todo, self.busy = memory, todo, busy
        self.rows, self.worker = rows, worker

    def __iter__(self) -> Iterator[int]:
        while (copy := self._take()) != NOBODY:
            yield copy - self.rows.start

    def _take(self) -> int:
        """The next copy; the last one counts as done."""
        # The lock is released even if this process is killed.
        fcntl.lockf(self.memory, fcntl.LOCK_EX)
        # Not before: another process may just look what is left, and numpy looks twice.
        if (done := self.busy[self.worker]) != NOBODY:
            self.todo[done] = False
        self.busy[self.worker] = NOBODY
        taken = set(self.busy.tolist())
        left = (np.flatnonzero(self.todo[self.rows]) + self.rows.start).tolist()
        copy = next((copy for copy in left if copy not in taken), NOBODY)
        self.busy[self.worker] = copy
        fcntl.lockf(self.memory, fcntl.LOCK_UN)
        return copy


def serve(handler: Handler, channel: socket.socket, copies: Iterable[int], own: range) -> None:
    """Answers commands, and uses the pauses between them."""
    while True:
        while not select.select([channel], [], [], 0)[0] and handler.idle(own):
            pass
        command = channel.recv(1)
        if not command:
            return
        for copy in copies:
            handler.run(command[0], copy)
        channel.sendall(RECEIPT)


def _die_with(lifeline: int) -> None:
    """Ends this process, whatever it is doing, when the other end of a pipe is closed."""
    # The signal's default action is to end the process. A thread that waits could not do it while
    # an engine keeps the interpreter's lock.
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(lifeline, fcntl.F_SETFL, os.O_ASYNC)
    if select.select([lifeline], [], [], 0)[0]:  # already
        os.kill(os.getpid(), signal.SIGIO)


def _find(root: str, module: str, name: str) -> type[Handler]:
    """The handler, without what its packages import for their users: torch, for one."""
    parts = module.split(".")[:-1]
    for depth in range(1, len(parts) + 1):
        package = ModuleType(".".join(parts[:depth]))
        package.__path__ = [str(Path(root, *parts[:depth]))]
        sys.modules[package.__name__] = package
    sys.path.append(root)
    found: type[Handler] = getattr(importlib.import_module(module), name)
    return found


if __name__ == "__main__":
    main()
