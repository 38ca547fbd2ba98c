"""The game's double, installed where pysc2 looks for the game."""

import os
import select
from pathlib import Path

import pytest
from double import Installation

from sipo_trl.envs.smac import load_map
from sipo_trl.envs.smac.sc2 import SC2Games

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
def make_games(game):
    """Makes games, and ends them with the tests of a file."""
    made = []

    def make(num_games=1, *, map_name="2m_vs_1z", seed=0, **options):
        spec = load_map(map_name)
        made.append(SC2Games(spec, num_games=num_games, seed=seed, timeout=LONG, **options))
        return made[-1]

    yield make
    for games in made:
        games.close()


@pytest.fixture
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
