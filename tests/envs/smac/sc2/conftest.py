"""The game's double, installed where pysc2 looks for the game."""

import os
import select
from pathlib import Path

import pytest
from double import Installation

from sipo_trl.envs.smac import SMACEnv

# Seconds that no test waits if all is well.
LONG = 100.0


@pytest.fixture(scope="module")
def game(tmp_path_factory):
    """A game under SC2PATH."""
    game = Installation(tmp_path_factory.mktemp("game"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SC2PATH", str(game.folder))
        yield game
    game.close()
    assert not game.complaints


@pytest.fixture(scope="module")
def make_env(game):
    """Makes environments, and closes them with the tests of a file."""
    made = []

    def make(copies=1, *, map_name="2m_vs_1z", seed=0, **options):
        env = SMACEnv(
            map_name, batch_size=[copies], backend="sc2", seed=seed, timeout=LONG, **options
        )
        made.append(env)
        return env

    yield make
    for env in made:
        if not env.is_closed:
            env.close()


@pytest.fixture(scope="session")
def wait_for_end():
    """Waits until processes have ended, or fails."""

    def wait(*processes):
        for process in processes:
            try:
                descriptor = os.pidfd_open(process)
            except ProcessLookupError:
                continue
            ended = select.select([descriptor], [], [], LONG)[0]
            os.close(descriptor)
            assert ended, f"{process} is {Path(f'/proc/{process}/cmdline').read_text()!r}"

    return wait
