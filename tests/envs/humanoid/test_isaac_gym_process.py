"""The bridge to Isaac Gym when things go wrong; when they go well, see test_isaac_gym.py."""

import os
import select
import signal
import sys
from pathlib import Path

import pytest

from sipo_trl.envs.humanoid import IsaacGymServer, isaac_gym_server

ISAAC_PYTHON = os.environ.get("ISAAC_PYTHON", sys.executable)
STANDIN = str(Path(__file__).parent / "isaac_gym_standin")
SETTINGS = {"num_envs": 2, "device": "cpu", "seed": 0, "horizon": 8}


@pytest.fixture(autouse=True)
def standin(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", STANDIN)


@pytest.fixture
def server(monkeypatch):
    """One that starts quickly but has nothing to step."""
    monkeypatch.setenv("ISAAC_STANDIN", "idle")
    server = IsaacGymServer(ISAAC_PYTHON, **SETTINGS)
    yield server
    server.close()


def descriptors():
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_killed_server_is_noticed(server):
    server.process.kill()
    with pytest.raises(RuntimeError, match=r"ended \(signal SIGKILL\).*\n.*gym_38"):
        server.step()
    with pytest.raises(RuntimeError, match="was closed: make a new environment"):
        server.step()


def test_a_server_that_hangs_is_given_up_and_ended(server):
    os.kill(server.process.pid, signal.SIGSTOP)
    server.timeout = 0.2
    with pytest.raises(RuntimeError, match=r"did not answer for 0\.2 s and was ended"):
        server.step()
    assert server.process.returncode == -signal.SIGKILL


def test_an_error_in_isaac_is_shown(monkeypatch):
    monkeypatch.setenv("ISAAC_STANDIN", "raise")
    server = IsaacGymServer(ISAAC_PYTHON, **SETTINGS)
    with pytest.raises(RuntimeError, match=r"exit code 1(?s:.*)PhysX has run out of memory"):
        server.step()


@pytest.mark.parametrize(
    ("misbehaviour", "message"),
    [
        ("sizes", "offers 2 copies with 75 observations .* instead of 2 copies with 108"),
        ("hang", r"did not answer for 0\.2 s and was ended"),
    ],
)
def test_a_server_that_starts_wrongly_is_ended(misbehaviour, message, monkeypatch):
    monkeypatch.setenv("ISAAC_STANDIN", misbehaviour)
    before = descriptors()
    timeout = 0.2 if misbehaviour == "hang" else 300
    with pytest.raises(RuntimeError, match=message):
        IsaacGymServer(ISAAC_PYTHON, **SETTINGS, timeout=timeout)
    assert descriptors() == before


def test_another_protocol_is_refused(monkeypatch):
    monkeypatch.setenv("ISAAC_STANDIN", "sizes")
    monkeypatch.setattr(isaac_gym_server, "PROTOCOL", 99)
    with pytest.raises(RuntimeError, match=r"speaks version 1 .* and this process version 99"):
        IsaacGymServer(ISAAC_PYTHON, **SETTINGS)


@pytest.mark.parametrize("path", ["/no/such/python", "/"])
def test_a_wrong_interpreter_is_named(path):
    before = descriptors()
    with pytest.raises(RuntimeError, match=f"isaac_python='{path}' cannot be started .*: give"):
        IsaacGymServer(path, **SETTINGS)
    assert descriptors() == before


def test_an_interpreter_without_isaac_is_named(monkeypatch):
    monkeypatch.delenv("PYTHONPATH")
    message = "(?s)exit code 1.*No module named 'isaacgym': install .* for .*python"
    with pytest.raises(RuntimeError, match=message):
        IsaacGymServer(ISAAC_PYTHON, **SETTINGS)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_busy_server_dies_with_its_client(number, monkeypatch):
    monkeypatch.setenv("ISAAC_STANDIN", "hang")
    client = os.fork()
    if client == 0:
        try:
            # Whoever runs the tests in the background has them ignore Ctrl-C.
            signal.signal(signal.SIGINT, signal.default_int_handler)
            IsaacGymServer(ISAAC_PYTHON, **SETTINGS)
        finally:
            os._exit(1)
    children = Path(f"/proc/{client}/task/{client}/children")
    while not (found := children.read_text().split()):
        pass
    server = os.pidfd_open(int(found[0]))
    os.kill(client, number)
    os.waitpid(client, 0)
    select.select([server], [], [])  # returns when the server has ended
    os.close(server)


def test_a_server_ends_with_the_object(server):
    ended = os.pidfd_open(server.process.pid)
    before = descriptors()
    server._close()
    assert select.select([ended], [], [], 0)[0]
    assert descriptors() == before - 2  # the channel and the log
    os.close(ended)
