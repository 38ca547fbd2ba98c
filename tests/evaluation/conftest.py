"""Archives that are only read, made once."""

from pathlib import Path

import pytest
import torch
from evaluation_archives import (
    battle_archive,
    football_archive,
    humanoid_archive,
    navigation_run,
)

from sipo_trl.archive import Archive
from sipo_trl.envs import HumanoidEnv
from sipo_trl.envs.humanoid import render
from sipo_trl.models import make_actor


@pytest.fixture(scope="session")
def navigation(tmp_path_factory):
    torch.manual_seed(0)
    return navigation_run(tmp_path_factory.mktemp("runs") / "navigation")


@pytest.fixture(scope="session")
def football(tmp_path_factory):
    torch.manual_seed(0)
    routes, wins = [(0, 1, 2), (0, 2), (0, 1, 2), (1, 0)], [True, True, True, False]
    return football_archive(tmp_path_factory.mktemp("runs") / "football", routes, wins)


@pytest.fixture(scope="session")
def battle(tmp_path_factory):
    torch.manual_seed(0)
    return battle_archive(tmp_path_factory.mktemp("runs") / "battle")


@pytest.fixture(scope="session")
def humanoid(tmp_path_factory):
    torch.manual_seed(0)
    return humanoid_archive(tmp_path_factory.mktemp("runs") / "humanoid")


@pytest.fixture
def drawing() -> None:
    try:
        render.offscreen_platform()
    except RuntimeError as error:
        pytest.skip(str(error))


@pytest.fixture
def humanoids(tmp_path) -> Path:
    """A run of two untrained policies that fall."""
    archive = Archive.create(tmp_path / "run" / "archive")
    (tmp_path / "run" / "config.yaml").write_text("seed: 0\n")
    env = HumanoidEnv(batch_size=[1], seed=0, threads=1)
    for seed in (0, 1):
        torch.manual_seed(seed)
        settings = {"name": "humanoid", "threads": 1, "stack": 1}
        archive.append(
            torch.randn(8, 54),
            policy=make_actor(env, hidden=[4], distribution="normal"),
            config={"env": settings, "seed": 0},
            episode=torch.zeros(8, dtype=torch.int64),
            step=torch.arange(8),
        )
    return tmp_path / "run"
