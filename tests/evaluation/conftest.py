"""Archives that are only read, made once."""

import pytest
import torch
from evaluation_archives import (
    battle_archive,
    football_archive,
    humanoid_archive,
    navigation_run,
)


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
