import math
import sys
from pathlib import Path

import pytest
import torch
from omegaconf import OmegaConf
from running import Quiet, contents

sys.path.append(str(Path(__file__).parents[1] / "training"))
from settings import small_config

from sipo_trl.algorithms import run_pbt
from sipo_trl.algorithms.pbt import Population
from sipo_trl.training import RunError, RunFolder
from sipo_trl.training.config import RBFConfig, WassersteinConfig


def start(config, path, reporter=None) -> RunFolder:
    if (path / "config.yaml").exists():
        folder = RunFolder.open(path)
    else:
        folder = RunFolder.create(path, OmegaConf.structured(config))
    run_pbt(config, folder, reporter or Quiet())
    return folder


def test_pairs_are_numbered_once(tmp_path) -> None:
    population = Population(small_config(iterations=4), tmp_path)
    seen = {}
    for i in range(4):
        others = [j for j in range(4) if j != i]
        for k, j in enumerate(others):
            seen.setdefault(int(population.pair[i, k]), set()).add(frozenset((i, j)))
    assert len(seen) == len(population.multipliers.value) == 6
    assert all(len(pairs) == 1 for pairs in seen.values())


def test_a_pairs_distance_is_the_mean_of_both_directions(tmp_path) -> None:
    population = Population(small_config(iterations=3), tmp_path)
    nan = math.nan
    rows = [
        {"distance_1": 1.0, "distance_2": 2.0},  # 0 from 1, 0 from 2
        {"distance_1": 3.0, "distance_2": nan},  # 1 from 0, 1 from 2
        {"distance_1": nan, "distance_2": nan},  # 2 from 0, 2 from 1
    ]
    found = population._pair_distances(rows)
    assert found[:2].tolist() == [2.0, 2.0]
    assert found[2].isnan()


def test_references_are_what_the_others_do_now(tmp_path) -> None:
    population = Population(small_config(iterations=3), tmp_path)
    population.step()
    for index, member in enumerate(population.members):
        references = member.learner.distance.measure.references
        others = population.latest.of_others(index)
        assert all(torch.equal(a, b) for a, b in zip(references, others, strict=True))


@pytest.mark.parametrize("measure", [None, RBFConfig(delta=0.1)], ids=["final_state", "rbf"])
def test_a_stopped_population_goes_on_exactly(tmp_path, measure) -> None:
    config = small_config(measure, iterations=3)
    whole = contents(start(config, tmp_path / "whole"))
    assert sum(name.endswith("entry.json") for name in whole) == 3
    with pytest.raises(KeyboardInterrupt):
        start(config, tmp_path / "stopped", Quiet(save_at=3, stop_at=5))
    assert contents(start(config, tmp_path / "stopped")) == whole


def test_what_cannot_work_is_named(tmp_path) -> None:
    with pytest.raises(RunError, match="at least 2 policies"):
        Population(small_config(iterations=1), tmp_path)
    with pytest.raises(RunError, match="learns against fixed references"):
        Population(small_config(WassersteinConfig(delta=0.1)), tmp_path)
