"""What can only be tried in a process of its own; ``play`` plays scenarios and returns findings.

Each scenario is a function of an empty folder. The child processes are forked, so that the seconds
it takes to import torch are paid once.
"""

import errno
import gc
import itertools
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import torch

import sipo_trl
from sipo_trl.archive import Archive, ArchiveError

DONE, REFUSED, FAILED, UNDISTURBED = range(4)


def play(*scenarios: Callable[[Path], Any], folder: Path, before: Sequence[str] = ()) -> Any:
    """Play scenarios of this file in a fresh interpreter, behind a command if there is one."""
    names = [scenario.__name__ for scenario in scenarios]
    result = subprocess.run(
        [*before, sys.executable, __file__, str(folder), *names],
        env={
            **os.environ,
            "PYTHONPATH": str(Path(sipo_trl.__file__).parents[1]),
            "OMP_NUM_THREADS": "1",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def fork(action: Callable[[], None]) -> int:
    """Start a child that does something and ends; its exit code says how it went."""
    pid = os.fork()
    if pid == 0:
        try:
            action()
        except ArchiveError:
            os._exit(REFUSED)
        except BaseException as error:
            sys.stderr.write(repr(error))
            os._exit(FAILED)
        os._exit(DONE)
    return pid


def exit_code(pid: int) -> int:
    """Wait for a child; a negative code is the signal that ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def append_disturbed(folder: Path, step: int, reaction: Callable[[], None]) -> None:
    """Append, and react to the ``step``-th thing that this asks of the file system."""
    events = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.scandir", "os.listdir"}
    counter = itertools.count()

    def hook(event: str, _: Any) -> None:
        if event in events and next(counter) == step:
            reaction()

    sys.addaudithook(hook)
    append_next(folder)
    if next(counter) <= step:
        os._exit(UNDISTURBED)


def numbered(number: int) -> torch.Tensor:
    return torch.full((50, 3), float(number))


def intact(archive: Archive) -> bool:
    """Whether every entry is complete and is the one that was appended in its place."""
    archive.verify()
    return all(
        entry.states.equal(numbered(index)) and entry.metrics == {"number": index}
        for index, entry in enumerate(archive)
    )


def append_next(folder: Path) -> None:
    archive = Archive.open(folder)
    archive.append(numbered(len(archive)), metrics={"number": len(archive)})


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


# A killed process loses nothing that the system has got, synced or not: fsync only takes time.
@mock.patch("os.fsync", new=os.fstat)
def disturbed_at_every_step(folder: Path, reaction: Callable[[], None]) -> list[dict[str, Any]]:
    """Append with an accident at the first step, then at the second, ... until none is left."""
    template, path = folder / "template", folder / "archive"
    Archive.create(template)
    append_next(template)
    findings = []
    for step in itertools.count():
        shutil.copytree(template, path)
        code = exit_code(fork(lambda step=step: append_disturbed(path, step, reaction)))
        if code == UNDISTURBED:
            break
        archive = Archive.open(path)
        finding = {
            "code": code,
            "entries": len(archive),
            "intact": intact(archive),
            "unchanged": names(path) == names(template),
        }
        append_next(path)
        archive = Archive.open(path)
        finding["goes_on"] = intact(archive) and len(archive) == finding["entries"] + 1
        finding["clean"] = sorted(item.name for item in path.iterdir())
        findings.append(finding)
        shutil.rmtree(path)
    return findings


def killed_at_every_step(folder: Path) -> list[dict[str, Any]]:
    return disturbed_at_every_step(folder, lambda: os.kill(os.getpid(), signal.SIGKILL))


def refused_at_every_step(folder: Path) -> list[dict[str, Any]]:
    def refuse() -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    return disturbed_at_every_step(folder, refuse)


def killed_at_any_moment(folder: Path) -> dict[str, Any]:
    """Kill a process that appends as fast as it can, many times over, and look at the rest."""
    path = folder / "archive"
    Archive.create(path)
    generator = random.Random(0)

    def append_forever() -> None:
        while True:
            append_next(path)

    started = time.perf_counter()
    append_next(path)
    period = time.perf_counter() - started
    kills, good = 0, True
    for _ in range(15):
        pid = fork(append_forever)
        time.sleep(generator.uniform(0, 3) * period)
        os.kill(pid, signal.SIGKILL)
        kills += exit_code(pid) == -signal.SIGKILL
        good &= intact(Archive.open(path))
        append_next(path)
    good &= intact(Archive.open(path))
    return {"kills": kills, "intact": good, "entries": len(Archive.open(path))}


def several_writers(folder: Path) -> dict[str, Any]:
    """Four processes append five entries each; who finds the archive locked tries again."""
    path = folder / "archive"
    Archive.create(path)

    def append_five(writer: int) -> None:
        archive = Archive.open(path)
        for number in range(5):
            while True:
                try:
                    archive.append(torch.full((9, 1), float(writer)), metrics={"number": number})
                except ArchiveError as error:
                    if "somebody else is writing" not in str(error):
                        raise AssertionError from error
                    time.sleep(0.002)
                else:
                    break

    children = [fork(lambda writer=writer: append_five(writer)) for writer in range(4)]
    codes = [exit_code(child) for child in children]
    archive = Archive.open(path)
    archive.verify()
    written = [(int(entry.states[0]), entry.metrics["number"]) for entry in archive]
    return {"codes": codes, "written": written}


def full_and_read_only_disk(folder: Path) -> dict[str, Any]:
    """Needs a mount namespace: on a real small disk, then on one that nobody may write to."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], check=True)
    path = folder / "archive"
    Archive.create(path)
    append_next(path)
    before = names(path)
    findings: dict[str, Any] = {}
    try:
        Archive.open(path).append(torch.zeros(200_000, 3), number=torch.zeros(200_000))
    except ArchiveError as error:
        findings["full"] = str(error)
    findings["unchanged"] = names(path) == before and intact(Archive.open(path))
    append_next(path)
    subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
    findings["readable"] = intact(Archive.open(path)) and len(Archive.open(path)) == 2
    try:
        append_next(path)
    except ArchiveError as error:
        findings["read_only"] = str(error)
    return findings


def two_million_states(folder: Path) -> dict[str, Any]:
    """Append memory-mapped states with little memory to spare, and open them; in megabytes."""
    states = torch.from_file(
        str(folder / "source"), shared=True, size=2_000_000 * 18, dtype=torch.float32
    ).view(-1, 18)
    states[-1] = 1.0
    archive = Archive.create(folder / "archive")
    # The first append of a process also loads code, which is not the question.
    Archive.create(folder / "other").append(states[:1])
    unlimited = resource.RLIM_INFINITY
    resource.setrlimit(resource.RLIMIT_DATA, (status("VmData") + (32 << 20), unlimited))
    archive.append(states)
    resource.setrlimit(resource.RLIMIT_DATA, (unlimited, unlimited))
    del states, archive
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # The peak is counted from here.
    before = status("VmRSS")
    opened = Archive.open(folder / "archive")
    findings = {"shape": opened[0].states.shape, "last": opened[0].states[-1].tolist()}
    return findings | {"megabytes": (status("VmHWM") - before) / 2**20}


def status(name: str) -> int:
    """Return a line of this process's memory accounts, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(f"{name}:"))


if __name__ == "__main__":
    torch.set_num_threads(1)
    results = {}
    for name in sys.argv[2:]:
        place = Path(sys.argv[1]) / name
        place.mkdir()
        results[name] = globals()[name](place)
    sys.stdout.write(json.dumps(results))
