import fcntl
import gc
import os
import signal
import subprocess
import sys
import textwrap
import time
from contextlib import suppress
from pathlib import Path

import counting
import numpy as np
import pytest
from counting import COUNT, CRASH, CRASH_LATER, HANG, LAST, LAYOUT, REPORT_TORCH, SLOW, Counting

from sipo_trl.envs.workers import WorkerPool
from sipo_trl.envs.workers.process import NOBODY, Copies


@pytest.fixture(params=[False, True], ids=["fixed", "roaming"])
def pool(request):
    pool = make(roaming=request.param)
    yield pool
    pool.close()


def make(copies=5, workers=2, step=1, **options):
    return WorkerPool(
        Counting,
        copies=copies,
        workers=workers,
        layout=LAYOUT,
        options={"step": step},
        **options,
    )


EVERYONE = np.ones(5, dtype=bool)


def alive(pid: int) -> bool:
    """Whether a process runs; one that nobody has waited for yet does not."""
    with suppress(FileNotFoundError):
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    return False


def wait_for_end(pids: list[int]) -> None:
    while any(map(alive, pids)):  # pytest's timeout ends it if they never do
        time.sleep(0.01)


def test_chosen_copies_are_reached_once_per_command(pool) -> None:
    chosen = np.array([True, False, True, True, False])
    assert not pool.run(COUNT, chosen).any()
    assert not pool.run(COUNT, EVERYONE).any()
    assert pool.arrays["count"].tolist() == [2, 1, 2, 2, 1]


def test_no_copy_is_reached_twice_by_workers_that_finish_at_the_same_time() -> None:
    copies, commands = 4, 4000
    pool = make(copies=copies, workers=3, roaming=True)
    for _ in range(commands):
        pool.run(COUNT, np.ones(copies, dtype=bool))
    assert pool.replaced == 0
    assert pool.arrays["count"].tolist() == [commands] * copies
    pool.close()


def test_what_is_left_to_do_changes_only_under_the_lock(monkeypatch) -> None:
    held = []

    class Watched(np.ndarray):
        def __setitem__(self, key, value) -> None:
            assert held
            super().__setitem__(key, value)

    def lockf(descriptor, operation) -> None:
        held.append(descriptor) if operation == fcntl.LOCK_EX else held.clear()

    monkeypatch.setattr(fcntl, "lockf", lockf)
    todo = np.array([True, False, True]).view(Watched)
    busy = np.full(2, NOBODY).view(Watched)
    for copy in (copies := Copies(0, todo, busy, rows=slice(0, 3), worker=1)):
        assert not held
        assert todo[copy]
        assert busy.tolist() == [NOBODY, copy]
    assert not copies.todo.any()
    assert busy.tolist() == [NOBODY, NOBODY]


def test_options_and_shapes_arrive() -> None:
    pool = make(step=3)
    pool.run(COUNT, EVERYONE)
    assert pool.arrays["count"].tolist() == [3] * 5
    assert pool.arrays["pair"].shape == (5, 2)
    pool.close()


def test_more_workers_than_copies_are_not_started() -> None:
    pool = make(copies=2, workers=8)
    assert len(pool.pids) == 2
    pool.close()


def test_workers_do_not_load_torch(pool) -> None:
    assert "torch" in sys.modules
    pool.arrays["count"][:] = 7
    pool.run(REPORT_TORCH, EVERYONE)
    assert pool.arrays["count"].tolist() == [0] * 5


@pytest.mark.parametrize("failure", [CRASH, HANG])
def test_only_the_copy_at_which_a_worker_fails_is_lost(pool, failure) -> None:
    pool.run(COUNT, EVERYONE)
    pool.timeout = 2.0
    pool.arrays["health"][1] = failure
    assert pool.run(COUNT, EVERYONE).tolist() == [False, True, False, False, False]
    assert pool.arrays["count"].tolist() == [2, 1, 2, 2, 2]
    assert pool.replaced == 1
    pool.arrays["health"][1] = 0
    assert not pool.run(COUNT, EVERYONE).any()
    assert pool.arrays["count"].tolist() == [3, 2, 3, 3, 3]


def test_who_is_slow_but_moves_does_not_hang() -> None:
    pool = make(progress="pair")
    pool.run(COUNT, EVERYONE)
    pool.timeout = 2.0
    pool.arrays["health"][1] = SLOW  # takes longer than that
    assert not pool.run(COUNT, EVERYONE).any()
    assert pool.arrays["pair"][1].tolist() == [8, 8]
    assert pool.replaced == 0
    pool.close()


def test_copies_that_roam_do_not_wait_for_a_worker_that_is_busy() -> None:
    pool = make(roaming=True)
    pool.arrays["health"][0] = LAST  # is not done before all others are
    assert not pool.run(COUNT, EVERYONE).any()
    assert pool.arrays["count"].tolist() == [1] * 5
    assert pool.replaced == 0
    pool.close()


def test_several_failures_at_once(pool) -> None:
    pool.arrays["health"][[0, 1, 4]] = CRASH
    assert pool.run(COUNT, EVERYONE).tolist() == [True, True, False, False, True]
    assert pool.arrays["count"].tolist() == [0, 0, 1, 1, 0]
    assert pool.replaced == 3


def test_nothing_is_lost_with_a_worker_that_was_idle(pool) -> None:
    pool.run(COUNT, EVERYONE)
    first = pool.pids
    pool.arrays["health"][0] = CRASH_LATER
    assert not pool.run(COUNT, EVERYONE).any()
    os.kill(first[1], signal.SIGKILL)
    wait_for_end(first)
    assert not pool.run(COUNT, EVERYONE).any()
    assert pool.arrays["count"].tolist() == [3] * 5
    assert pool.replaced == 2
    assert not set(first) & set(pool.pids)


def test_a_worker_that_cannot_start_says_why() -> None:
    pool = make(step=0)
    with pytest.raises(RuntimeError, match=r"exit code 1.*\n.*cannot count in steps of 0"):
        pool.run(COUNT, EVERYONE)
    with pytest.raises(RuntimeError, match="was closed: make a new one"):
        pool.run(COUNT, EVERYONE)


def test_workers_end_with_the_pool(pool) -> None:
    other = make()
    pids = [*pool.pids, *other.pids]
    pool.close()
    del other
    gc.collect()
    assert not any(map(alive, pids))


def test_an_interruption_ends_the_workers(pool) -> None:
    pool.run(COUNT, EVERYONE)
    pool.arrays["health"][0] = HANG

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    with pytest.raises(KeyboardInterrupt):
        pool.run(COUNT, EVERYONE)
    signal.signal(signal.SIGALRM, before)
    assert not any(map(alive, pool.pids))
    assert pool.arrays["count"][4] == 2  # what they did is still there


def test_workers_end_with_a_killed_process() -> None:
    program = f"""
        import sys
        sys.path.append({str(Path(counting.__file__).parent)!r})
        from counting import *
        from sipo_trl.envs.workers import WorkerPool
        pool = WorkerPool(Counting, copies=2, workers=2, layout=LAYOUT, options={{"step": 1}})
        pool.run(COUNT, np.array([True, True]))
        print(*pool.pids, flush=True)
        pool.arrays["health"][1] = HANG
        pool.run(COUNT, np.array([True, True]))
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        assert all(map(alive, pids))
        parent.kill()
    wait_for_end(pids)
