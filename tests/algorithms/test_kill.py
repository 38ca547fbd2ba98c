"""A run that is killed at any moment goes on as if nothing had happened."""

import os
import random
import signal
import sys
from pathlib import Path

import pytest
from running import Quiet, contents, start

sys.path.append(str(Path(__file__).parents[1] / "training"))
from settings import small_config

from sipo_trl.training import RunFolder
from sipo_trl.training.config import BudgetConfig, ITRConfig

CHANGES = {"os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.truncate", "shutil.rmtree"}


class SavesAlways(Quiet):
    """A checkpoint after every update."""

    def update(self, training, row) -> None:
        training.save()


def in_child(config: ITRConfig, path: Path, die_at: int | None = None) -> int:
    """Runs in a forked process that kills itself at its n-th change of the file system.

    Returns the number of changes if it lived, and -1 if it died.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        count = 0

        def watch(event: str, arguments: tuple[object, ...]) -> None:
            nonlocal count
            flags = arguments[2] if event == "open" else 0
            if event in CHANGES or (isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR)):
                count += 1
                if count == die_at:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(watch)
        start(config, path, SavesAlways())
        os.write(writing, str(count).encode())
        os._exit(0)
    os.close(writing)
    _, status = os.waitpid(child, 0)
    with os.fdopen(reading) as pipe:
        changes = pipe.read()
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return -1
    assert os.WEXITSTATUS(status) == 0
    return int(changes)


@pytest.fixture(scope="module")
def config() -> ITRConfig:
    settings = small_config(budget=BudgetConfig(name="test", frames=320))
    settings.algorithm.entry.episodes = 2
    return settings


@pytest.fixture(scope="module")
def whole(config, tmp_path_factory) -> tuple[dict[str, str], int]:
    """What an undisturbed run leaves, and by how many changes of the file system."""
    path = tmp_path_factory.mktemp("whole") / "run"
    changes = in_child(config, path)
    return contents(RunFolder.open(path)), changes


@pytest.mark.parametrize("part", range(8))
def test_killed_anywhere_it_ends_with_the_same_bits(part, config, whole, tmp_path) -> None:
    expected, changes = whole
    draw = random.Random(part)
    # One moment in each eighth of the run, so that no part of it is left out; then others, while
    # it recovers.
    moment = draw.randrange(part * changes // 8, (part + 1) * changes // 8) + 1
    assert in_child(config, tmp_path / "run", die_at=moment) == -1
    in_child(config, tmp_path / "run", die_at=draw.randrange(1, changes // 4))
    in_child(config, tmp_path / "run")
    assert contents(RunFolder.open(tmp_path / "run")) == expected
