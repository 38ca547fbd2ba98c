"""The client's side of one game."""

import json
import os
import signal
import socket
import subprocess
import sys
import weakref
from contextlib import ExitStack, suppress
from dataclasses import asdict
from typing import NoReturn

from sipo_trl.envs.smac.sc2 import channel, worker

LAST_LINES, LAST_BYTES = 20, 8192


class GameLost(RuntimeError):
    """A game has ended, hangs or makes no sense; the message says which."""


class GameProcess:
    """A worker process and the game that it plays.

    Both end with this object, with :meth:`close`, or with the process that holds it, whichever
    comes first and however it comes. They do not hear Ctrl-C, so that a run can still be finished
    and saved.

    Args:
        settings: what to play.
        memory: descriptor of the memory that the games share.

    Keyword Args:
        temporary: folder for the game's temporary files.
    """

    def __init__(self, settings: channel.GameSettings, memory: int, *, temporary: str) -> None:
        resources = ExitStack()
        self._close = weakref.finalize(self, resources.close)
        self._log = os.memfd_create("log")
        resources.callback(os.close, self._log)
        self._socket, remote = socket.socketpair()
        resources.enter_context(self._socket)
        arguments = json.dumps([remote.fileno(), memory, asdict(settings)])
        with remote:
            self.process = subprocess.Popen(
                [sys.executable, worker.__file__, arguments],
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=self._log,
                env={**os.environ, "TMPDIR": temporary},
                pass_fds=(remote.fileno(), memory),
                start_new_session=True,
            )
        resources.callback(_end, self.process)

    def send(self, command: int, argument: int = 0) -> None:
        """Tells the worker what to do next; to be followed by :meth:`wait`."""
        with suppress(OSError):  # if nobody is there, nobody will answer either
            self._socket.sendall(channel.COMMAND.pack(command, argument))

    def wait(self, seconds: float) -> None:
        """Waits until the worker has started, or has done what it was last told.

        Raises:
            GameLost: if it ended instead, or let more than so many seconds pass; both it and the
                game are gone then.
        """
        self._socket.settimeout(max(seconds, 0.01))  # who has answered is heard in any case
        try:
            answer = self._socket.recv(len(channel.RECEIPT))
        except TimeoutError:
            self._lose("did not answer in time and was ended")
        except OSError:
            answer = b""
        except BaseException:
            # The answer that is still to come would be taken for that of the next command.
            self.close()
            raise
        if not answer:
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(1)  # for an exit code of its own
            self._lose("ended")

    def close(self) -> None:
        """Ends the worker and its game."""
        self._close()

    def _lose(self, event: str) -> NoReturn:
        log = os.pread(self._log, LAST_BYTES, max(0, os.fstat(self._log).st_size - LAST_BYTES))
        self.close()
        lines = log.decode(errors="replace").splitlines()[-LAST_LINES:] or ["(it wrote nothing)"]
        code = _describe(self.process.returncode)
        error = GameLost(f"StarCraft II {event} ({code}). Its last line: {lines[-1]}")
        error.add_note("\n".join(["Its last lines:", *lines]))
        raise error


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends a worker and the game, which is of the same group and never outlives it."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _describe(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"
