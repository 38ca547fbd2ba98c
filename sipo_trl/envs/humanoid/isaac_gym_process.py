"""Our side of the bridge to Isaac Gym."""

import json
import os
import signal
import socket
import subprocess
import weakref
from contextlib import ExitStack
from pathlib import Path
from typing import NoReturn

from sipo_trl.envs.errors import EnvError
from sipo_trl.envs.humanoid import isaac_gym_server as server

LAST_LINES, LAST_BYTES = 20, 8192


class IsaacGymServer:
    """A process of the user's own interpreter that moves Isaac Gym's humanoids.

    The process ends with this object, with :meth:`close`, or with the process that holds it,
    whichever comes first. It does not hear Ctrl-C, so that a run can still be finished and saved.

    Args:
        isaac_python: the interpreter that has Isaac Gym.

    Keyword Args:
        num_envs: number of copies N.
        device: where Isaac simulates.
        seed: decides the start of every episode.
        horizon: steps after which an episode is truncated.
        timeout: seconds without an answer after which the process counts as hanging.

    Attributes:
        process: what was started.
        timeout: as above; may be changed at any time.
        arrays: memory that both processes see: ``action`` [N, 21] and ``reset`` [N], to be written
            before a step; ``observation`` [N, 108], ``reward``, ``done`` and ``time_out`` [N],
            to be read after it.

    Raises:
        RuntimeError: if the process cannot be started, ends, hangs or speaks another protocol.
    """

    def __init__(
        self,
        isaac_python: str | Path,
        *,
        num_envs: int,
        device: str,
        seed: int,
        horizon: int,
        timeout: float = 300.0,
    ) -> None:
        resources = ExitStack()
        self._close = weakref.finalize(self, resources.close)
        self._log, memory = os.memfd_create("log"), os.memfd_create("arrays")
        resources.callback(os.close, self._log)
        self._channel, remote = socket.socketpair()
        resources.enter_context(self._channel)
        self.timeout = timeout
        settings = {
            "channel": remote.fileno(),
            "memory": memory,
            "num_envs": num_envs,
            "device": device,
            "seed": seed,
            "horizon": horizon,
        }
        try:
            self.arrays = server.map_arrays(memory, num_envs)
            self.process = subprocess.Popen(
                [isaac_python, server.__file__, json.dumps(settings)],
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=self._log,
                pass_fds=(remote.fileno(), memory),
                start_new_session=True,
            )
        except OSError as error:
            self.close()
            raise EnvError(
                f"isaac_python={str(isaac_python)!r} cannot be started ({error.strerror}): give "
                "the path of the Python interpreter that has Isaac Gym."
            ) from error
        finally:
            # The process has its own copies of these two.
            remote.close()
            os.close(memory)
        resources.callback(_end, self.process)
        self._greet(num_envs)

    def step(self) -> None:
        """Moves all copies by ``action``; those marked in ``reset`` start anew instead."""
        self._command(server.STEP)

    def seed(self, seed: int) -> None:
        """Decides the start of the episodes to come."""
        self._command(server.SEED, seed)

    def close(self) -> None:
        """Ends the process."""
        self._close()

    def _greet(self, num_envs: int) -> None:
        offer = server.GREETING.unpack(self._exchange(b"", server.GREETING.size))
        expected = (server.PROTOCOL, num_envs, server.OBSERVATIONS, server.ACTIONS)
        if offer == expected:
            return
        self.close()
        if offer[0] != expected[0]:
            raise EnvError(
                f"Isaac Gym's server speaks version {offer[0]} of the protocol and this process "
                f"version {expected[0]}: {server.__file__} was changed meanwhile; start anew."
            )
        sizes = "{} copies with {} observations and {} actions".format
        raise EnvError(
            f"Isaac Gym's server offers {sizes(*offer[1:])} instead of {sizes(*expected[1:])}: "
            "use the humanoid of IsaacGymEnvs as it is."
        )

    def _command(self, command: int, argument: int = 0) -> None:
        if not self._close.alive:
            raise EnvError("Isaac Gym's server was closed: make a new environment.")
        self._exchange(server.COMMAND.pack(command, argument), len(server.RECEIPT))

    def _exchange(self, message: bytes, size: int) -> bytes:
        """Sends a message and waits for an answer of some bytes."""
        try:
            self._channel.settimeout(self.timeout)
            self._channel.sendall(message)
            answer = self._channel.recv(size)
        except TimeoutError:
            self._fail(f"did not answer for {self.timeout:g} s and was ended")
        except OSError:
            answer = b""
        except BaseException:
            # The answer that is still to come would be taken for that of the next command.
            self.close()
            raise
        if not answer:
            self._fail("ended")
        return answer

    def _fail(self, event: str) -> NoReturn:
        size = os.fstat(self._log).st_size
        # Without moving the position, which is where the process writes.
        log = os.pread(self._log, LAST_BYTES, max(0, size - LAST_BYTES))
        self.close()
        lines = log.decode(errors="replace").splitlines()[-LAST_LINES:]
        raise EnvError(
            f"Isaac Gym's server {event} ({_describe(self.process.returncode)}). Its last lines:\n"
            + "\n".join(lines or ["(none)"])
        )


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def _describe(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"
