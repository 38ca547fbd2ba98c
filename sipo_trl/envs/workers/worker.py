"""One worker process, as the pool sees it."""

import json
import os
import signal
import socket
import subprocess
import sys
import weakref
from contextlib import ExitStack, suppress
from typing import Any

from sipo_trl.envs.workers import process

LAST_LINES, LAST_BYTES = 20, 8192
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    # Engines free memory that they take again at once: if the C library keeps it meanwhile, a step
    # of football takes a tenth less.
    "MALLOC_TRIM_THRESHOLD_": str(2**30),
    # Fresh memory is zero (it gets the complement), so that what an engine forgets to initialise is
    # the same in all processes.
    "MALLOC_PERTURB_": "255",
}


class Worker:
    """A process that looks after some copies.

    It ends with this object, with :meth:`close`, or with the process that holds it, whichever
    comes first, also while it hangs. It does not hear Ctrl-C, so that a run can still be saved.

    Args:
        memory: descriptor of the shared memory.
        settings: what :func:`sipo_trl.envs.workers.process.main` reads, but for descriptors.

    Attributes:
        rows: which copies it may take.
        proven: whether it has carried out a command.
    """

    def __init__(self, memory: int, settings: dict[str, Any]) -> None:
        self.rows = slice(*settings["rows"])
        self.proven = False
        resources = ExitStack()
        self._close = weakref.finalize(self, resources.close)
        self._log = os.memfd_create("log")
        resources.callback(os.close, self._log)
        self.channel, remote = socket.socketpair()
        resources.enter_context(self.channel)
        reading, writing = os.pipe()
        resources.callback(os.close, writing)
        descriptors = {"channel": remote.fileno(), "memory": memory, "lifeline": reading}
        try:
            self.process = subprocess.Popen(
                [sys.executable, process.__file__, json.dumps({**settings, **descriptors})],
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=self._log,
                pass_fds=tuple(descriptors.values()),
                start_new_session=True,
                env={**os.environ, **ENVIRONMENT},
            )
        finally:
            # The process has its own copies of these two.
            remote.close()
            os.close(reading)
        resources.callback(_end, self.process)

    def send(self, command: int) -> None:
        """Gives a command; that the process is gone shows when its receipt is asked for."""
        with suppress(OSError):
            self.channel.sendall(bytes([command]))

    def receive(self) -> bool:
        """Takes the receipt that is waiting; ``False`` if the process is gone instead."""
        try:
            answered = self.channel.recv(1) == process.RECEIPT
        except OSError:
            answered = False
        self.proven |= answered
        return answered

    def _gone(self) -> bool:
        """Whether the process has let go of its end of the channel, as at its end."""
        with suppress(OSError):
            self.channel.setblocking(False)
            return self.channel.recv(1, socket.MSG_PEEK) == b""
        return False

    def close(self) -> None:
        """Ends the process."""
        self._close()

    def last_words(self) -> str:
        """How the process ended, and the last lines that it wrote; ends it if need be."""
        if self._gone():
            self.process.wait()
        size = os.fstat(self._log).st_size
        # Without moving the position, which is where the process writes.
        log = os.pread(self._log, LAST_BYTES, max(0, size - LAST_BYTES))
        self.close()
        code = self.process.returncode
        reason = f"exit code {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"
        lines = log.decode(errors="replace").splitlines()[-LAST_LINES:]
        return f"{reason}. Its last lines:\n" + "\n".join(lines or ["(none)"])


def _end(child: subprocess.Popen[bytes]) -> None:
    child.kill()
    child.wait()
