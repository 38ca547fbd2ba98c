"""Nothing is left behind, however the client ends."""

import os
import signal
import tempfile
from pathlib import Path

import pytest
import torch

from sipo_trl.envs.smac import load_map
from sipo_trl.envs.smac.sc2 import SC2Games


def parent(process):
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def shared_memories():
    links = [x.readlink() for x in Path("/proc/self/fd").iterdir() if x.is_symlink()]
    return sum(str(link).startswith("/memfd:") for link in links)


@pytest.fixture
def new(game):
    """The games that were started since the test began, and their workers."""
    known = set(game.battles)

    def find():
        games = set(game.battles) - known
        return games | {parent(process) for process in games}

    return find


def test_nothing_is_left_of_games_that_were_closed(new, wait_for_end, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = shared_memories()
    games = SC2Games(load_map("2m_vs_1z"), num_games=2, seed=0)
    processes = new()
    assert len(processes) == 4
    games.close()
    games.close()  # does nothing
    wait_for_end(*processes)
    assert not list(tmp_path.iterdir())
    del games
    assert shared_memories() == before


def test_a_game_ends_with_its_worker(make_games, new, wait_for_end):
    games = make_games()
    games.begin([0])
    (worker,) = {parent(process) for process in new()} - {os.getpid()}
    processes = new()
    os.kill(worker, signal.SIGKILL)
    wait_for_end(*processes)
    assert games.step(torch.ones(1, 2), [0]) == [0]
    games.close()


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL, "error"])
def test_games_end_with_their_client(game, new, wait_for_end, end):
    """Even one that is busy, because the game hangs."""
    game.faults.append(("step", 0, "hang"))
    hangs, notice = os.pipe()
    client = os.fork()
    if client == 0:
        try:
            # Whoever runs the tests in the background has them ignore Ctrl-C.
            signal.signal(signal.SIGINT, signal.default_int_handler)
            games = SC2Games(load_map("2m_vs_1z"), num_games=1, seed=0)
            games.begin([0])
            os.write(notice, b".")
            if end == "error":
                raise RuntimeError
            games.step(torch.ones(1, 2), [0])
        finally:
            os._exit(1)
    os.read(hangs, 1)
    processes = new()
    assert len(processes) == 2
    if end != "error":
        os.kill(client, end)
    os.waitpid(client, 0)
    wait_for_end(*processes)
    game.faults.clear()
