"""Recurrent teams whose members die, through the whole training program."""

import copy
import sys
from pathlib import Path

import pytest
import torch
from running import Quiet, contents, start

sys.path.append(str(Path(__file__).parents[1] / "training"))
from settings import small_config

from evaluation.population import load_population
from evaluation.rollout import replay
from evaluation.rows import entropy_rows, positions
from sipo_trl.envs.config import SMACConfig
from sipo_trl.training.config import BudgetConfig, CollectorConfig, NetworkConfig, RBFConfig


def team_config(**changes):
    return small_config(
        RBFConfig(delta=0.1),
        env=SMACConfig(),
        network=NetworkConfig(hidden=[8], gru=8, layer_norm=True),
        budget=BudgetConfig(name="test", frames=320),
        **changes,
    )


def test_a_stopped_run_goes_on_exactly(tmp_path):
    config = team_config()
    whole = contents(start(copy.deepcopy(config), tmp_path / "whole"))
    for save_at, stop_at in [(1, 2), (3, 3)]:
        path = tmp_path / f"stopped_{stop_at}"
        with pytest.raises(KeyboardInterrupt):
            start(config, path, Quiet(save_at, stop_at))
        assert contents(start(config, path)) == whole


def test_the_archive_holds_what_evaluation_reads(tmp_path):
    folder = start(team_config(iterations=1), tmp_path / "run")
    population = load_population(folder.path)
    (policy,) = population
    assert policy.states.shape[1] == 4 * 8
    alive = policy.column("alive")
    assert alive.shape[1] == 2
    assert len(positions(policy)) == alive.sum()
    assert len(entropy_rows(policy)) == 0  # nothing is won so early
    won = {name: policy.data[name] for name in policy.data.keys()}
    won["success"] = torch.ones_like(won["success"])
    object.__setattr__(policy, "data", won)
    assert entropy_rows(policy).shape == (alive.sum(), 4)
    again = replay(population, episodes=2)
    assert again.policies[0].column("enemy_position").shape[1:] == (1, 2)


def test_chunks_have_to_fit_into_batches():
    with pytest.raises(ValueError, match=r"5 steps, which is no multiple of ppo\.chunk, 10"):
        team_config(collector=CollectorConfig(num_envs=16, frames_per_batch=80))
