"""Nothing is left behind, however the environment ends."""

import os
import signal
import tempfile
from pathlib import Path

import pytest
import torch

from sipo_trl.envs.smac import SMACEnv


def parent(process):
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


@pytest.fixture
def started(game):
    """The games that were started since the test began, and their workers."""
    known = set(game.battles)

    def find():
        games = set(game.battles) - known
        return games | {parent(process) for process in games}

    return find


def test_nothing_is_left_of_games_that_were_closed(
    make_env, started, wait_for_end, tmp_path, monkeypatch
):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    env = make_env(2)
    processes = started()
    assert len(processes) == 4
    env.close()
    wait_for_end(*processes)
    assert not list(tmp_path.iterdir())


def test_a_game_ends_with_its_worker(make_env, started, wait_for_end):
    env = make_env()
    state = env.reset()
    processes = started()
    os.kill(env.battles.pool.pids[0], signal.SIGKILL)
    wait_for_end(*processes)
    state["agents", "action"] = torch.ones(1, 2, dtype=torch.int64)
    assert env.step(state)["next", "lost"].all()


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL, "error"])
def test_games_end_with_their_client(game, started, wait_for_end, tmp_path, monkeypatch, end):
    """Even one that is busy, because the game hangs."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # who is killed cannot tidy up
    hangs, notice = os.pipe()
    client = os.fork()
    if client == 0:
        try:
            # Whoever runs the tests in the background has them ignore Ctrl-C.
            signal.signal(signal.SIGINT, signal.default_int_handler)
            env = SMACEnv("2m_vs_1z", batch_size=[1], backend="sc2", seed=0)
            os.write(notice, b".")
            if end != "error":
                env.reset()
        finally:
            os._exit(1)
    game.faults.append(("observation", 0, "hang"))
    os.read(hangs, 1)
    processes = started()
    assert len(processes) == 2
    if end != "error":
        os.kill(client, end)
    os.waitpid(client, 0)
    wait_for_end(*processes)
    game.faults.clear()
