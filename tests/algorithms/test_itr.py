import copy
import dataclasses
import sys
from pathlib import Path

import pytest
import torch
from omegaconf import OmegaConf
from running import Quiet, contents, start
from torch.nn.utils import parameters_to_vector

sys.path.append(str(Path(__file__).parents[1] / "training"))
from settings import small_config

from sipo_trl.archive import Archive
from sipo_trl.training import Iteration
from sipo_trl.training.attempt import Attempt
from sipo_trl.training.config import (
    FinalStateConfig,
    MultiplierConfig,
    NetworkConfig,
    PPOConfig,
    RBFConfig,
    WassersteinConfig,
)
from sipo_trl.training.metrics import MetricsTable
from sipo_trl.training.program import typed
from sipo_trl.training.run_folder import RunError


def test_the_archive_grows_by_one_policy_per_iteration(tmp_path) -> None:
    folder = start(small_config(iterations=3), tmp_path / "run")
    archive = Archive.open(folder.path / "archive")
    assert len(archive) == 3
    for index, entry in enumerate(archive):
        assert len(entry.metrics["distances"]) == len(entry.metrics["multipliers"]) == index
        assert set(entry.data.keys()) >= {
            "states",
            "step",
            "episode",
            "return",
            "success",
            "landmark",
        }
        assert entry.config["env"]["name"] == "navigation"
        action = entry.load_policy()(small_config().env.make(2, seed=0).reset())["action"]
        assert action.shape == (2, 2)
    assert not list(folder.path.glob("iterations/*/checkpoints"))
    assert len(list(folder.path.glob("iterations/*/metrics.csv"))) == 3


@pytest.mark.parametrize(
    "config",
    [
        small_config(),
        small_config(RBFConfig(delta=0.1)),
        small_config(WassersteinConfig(delta=0.1)),
        small_config(network=NetworkConfig(hidden=[8], gru=8)),
        small_config(
            network=NetworkConfig(hidden=[8], observation_norm=True),
            ppo=PPOConfig(epochs=2, minibatches=2, target_kl=0.01),
        ),
    ],
    ids=["final_state", "rbf", "wd", "recurrent", "adaptive"],
)
def test_one_seed_one_result_and_a_stopped_run_goes_on_exactly(tmp_path, config) -> None:
    config.env.solved, config.budget.frames = 2.0, 800  # out of reach: all attempts are made
    whole = contents(start(config, tmp_path / "whole"))
    assert whole == contents(start(copy.deepcopy(config), tmp_path / "again"))
    config.seed = 1
    assert whole != contents(start(config, tmp_path / "other"))
    config.seed = 0
    for save_at, stop_at in [(1, 1), (3, 5), (6, 6), (9, 11), (12, 13)]:
        path = tmp_path / f"stopped_{stop_at}"
        with pytest.raises(KeyboardInterrupt):
            start(config, path, Quiet(save_at, stop_at))
        assert contents(start(config, path)) == whole


def test_a_finished_run_can_be_extended(tmp_path) -> None:
    longer = contents(start(small_config(iterations=3), tmp_path / "longer"))
    start(small_config(iterations=2), tmp_path / "extended")
    extended = contents(start(small_config(iterations=3), tmp_path / "extended"))
    # Entry documents keep the settings that they were made with, and those say how many.
    names = [name for name in longer if name.endswith((".memmap", ".csv"))]
    assert names
    assert {name: extended[name] for name in names} == {name: longer[name] for name in names}


def test_attempts_share_the_budget_and_the_best_one_counts(tmp_path) -> None:
    config = small_config()
    config.env.solved = 2.0  # out of reach
    folder = start(config, tmp_path / "run")
    archive = Archive.open(folder.path / "archive")
    for index in (0, 1):
        table = (folder.iteration(index) / "metrics.csv").read_text().splitlines()[1:]
        attempts = [line.split(",")[0] for line in table]
        frames = [int(line.split(",")[1]) for line in table]
        assert set(attempts) == {"0", "1"}
        assert max(frames) <= config.budget.frames
    assert archive[0].metrics["return"] <= 1


@pytest.mark.parametrize(("settle", "counts"), [(5, 3), (0, 8)], ids=["best", "paper: last"])
def test_which_policy_of_an_attempt_counts(tmp_path, monkeypatch, settle, counts) -> None:
    """The task is solved in the third update only, as a run's own evaluation confirms."""
    config = small_config(iterations=1)
    config.env.solved, config.algorithm.settle, config.algorithm.tries = 1.0, settle, 1
    iteration = Iteration(config, Archive.create(tmp_path / "archive"), tmp_path / "it")
    weights = []

    def step_with_one_good_update(self):
        row = step(self)
        weights.append(parameters_to_vector(self.learner.actor.parameters()).detach())
        return {**row, "return": float(len(weights) == 3), "good": 0.0}

    def evaluate_as_in_training(actor):
        outcome = evaluate(actor)
        solved = torch.equal(parameters_to_vector(actor.parameters()), weights[2])
        outcome.evaluation.returns[:] = float(solved)
        return dataclasses.replace(outcome, solved=solved)

    step, evaluate = Attempt.step, iteration.evaluate
    monkeypatch.setattr(Attempt, "step", step_with_one_good_update)
    monkeypatch.setattr(iteration, "evaluate", evaluate_as_in_training)
    outcome = iteration.run(lambda *_: None)
    assert len(weights) == 8
    assert torch.equal(parameters_to_vector(outcome.actor.parameters()), weights[counts - 1])
    assert outcome.accepted == (counts == 3)


@pytest.mark.parametrize(("mark", "counts"), [(0.0, 3), (None, 8)])
def test_distance_makes_up_for_return_above_a_mark(tmp_path, monkeypatch, mark, counts) -> None:
    """The policy of the third update keeps its distance, and returns half of the last one's."""
    config = small_config(iterations=1)
    config.env.solved, config.algorithm.settle, config.algorithm.tries = mark, 5, 1
    iteration = Iteration(config, Archive.create(tmp_path / "archive"), tmp_path / "it")
    weights = []

    def step_that_is_lucky_once(self):
        row = step(self)
        weights.append(parameters_to_vector(self.learner.actor.parameters()).detach())
        return {**row, "return": 1.0 + (len(weights) == 3), "good": 0.0}

    def evaluate_distance(actor):
        outcome = evaluate(actor)
        different = torch.equal(parameters_to_vector(actor.parameters()), weights[2])
        outcome.evaluation.returns[:] = 0.5 if different else 1.0
        return dataclasses.replace(outcome, satisfied=[different])

    step, evaluate = Attempt.step, iteration.evaluate
    monkeypatch.setattr(Attempt, "step", step_that_is_lucky_once)
    monkeypatch.setattr(iteration, "evaluate", evaluate_distance)
    outcome = iteration.run(lambda *_: None)
    assert torch.equal(parameters_to_vector(outcome.actor.parameters()), weights[counts - 1])


def test_an_attempt_stops_once_it_is_confirmed(tmp_path) -> None:
    config = small_config(iterations=1)
    config.env.solved, config.algorithm.settle = -1.0, 2  # solved by anything
    folder = start(config, tmp_path / "run")
    rows = (folder.iteration(0) / "metrics.csv").read_text().splitlines()[1:]
    assert 2 <= len(rows) < config.budget.frames / config.collector.frames_per_batch / 2


def test_evaluation_leaves_no_trace_in_the_random_generators(tmp_path) -> None:
    iteration = Iteration(small_config(), Archive.create(tmp_path / "archive"), tmp_path / "it")
    before = torch.get_rng_state()
    first = iteration.evaluate(iteration.attempt.learner.actor)
    second = iteration.evaluate(iteration.attempt.learner.actor)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(first.evaluation.columns["states"], second.evaluation.columns["states"])


def test_settings_survive_the_file(tmp_path) -> None:
    config = small_config(RBFConfig(delta=0.3, variance=0.5))
    folder = start(small_config(RBFConfig(delta=0.3, variance=0.5), iterations=0), tmp_path / "run")
    assert typed(folder.config).as_dict() == {**config.as_dict(), "iterations": 0}


def test_an_attempt_with_mostly_good_episodes_exceeds_its_share(tmp_path, monkeypatch) -> None:
    """Attempts have 320 of 640 frames; one that is never promising is given up after these."""

    def attempts(good: float) -> set[float]:
        step = Attempt.step
        monkeypatch.setattr(Attempt, "step", lambda self: {**step(self), "good": good})
        config = small_config(iterations=1)
        config.env.solved = 2.0  # more than there is: no attempt is ever accepted
        folder = start(config, tmp_path / str(good))
        monkeypatch.undo()
        rows = MetricsTable(next(folder.path.glob("iterations/*/metrics.csv"))).read()
        return {row["attempt"] for row in rows}

    assert attempts(good=0.4) == {0, 1}
    assert attempts(good=0.6) == {0}


@pytest.mark.parametrize(
    ("multiplier", "settle", "attempts"),
    [
        ({"lr": 1e-3, "maximum": 10.0}, 4, {0}),
        ({"lr": 1e-3, "maximum": 10.0}, 5, {0, 1}),
        ({"lr": 1e3, "maximum": 10.0}, 4, {0, 1}),
        ({"fixed": True}, 4, {0, 1}),
    ],
    ids=["rising", "not good for long enough", "at its bound", "fixed"],
)
def test_a_good_attempt_exceeds_its_share_while_multipliers_rise(
    tmp_path, monkeypatch, multiplier, settle, attempts
) -> None:
    """An attempt's share is four updates."""
    step = Attempt.step
    good_but_too_close = {"return": 1.0, "distance_1": -9.0, "good": 0.0}

    def step_too_close(self):
        self.learner.multipliers.update(torch.tensor([-9.0]))
        return {**step(self), **good_but_too_close}

    config = small_config(iterations=1)
    config.env.solved, config.algorithm.settle = 1.0, settle
    config.algorithm.multiplier = MultiplierConfig(initial=1.0, **multiplier)
    archive = Archive.create(tmp_path / "archive")
    index = torch.arange(5)
    archive.append(torch.zeros(5, 2), episode=index, step=0 * index)
    iteration = Iteration(config, archive, tmp_path / "it")
    monkeypatch.setattr(Attempt, "step", step_too_close)
    iteration.run(lambda *_: None)
    assert {row["attempt"] for row in iteration.table.read()} == attempts


def test_rates_follow_the_divergence(tmp_path) -> None:
    ppo = PPOConfig(epochs=2, minibatches=2, actor_lr=5e-4, target_kl=1e6)
    folder = start(small_config(iterations=1, ppo=ppo), tmp_path / "run")
    rows = MetricsTable(next(folder.path.glob("iterations/*/metrics.csv"))).read()
    grown = [row["kl_approx"] > 0 for row in rows if row["attempt"] == 0]
    assert rows[len(grown) - 1]["actor_lr"] == pytest.approx(min(5e-4 * 1.5 ** sum(grown), 1e-2))


def test_without_a_mark_there_is_one_attempt(tmp_path) -> None:
    config = small_config(FinalStateConfig(delta=0.0), iterations=2)  # which any policy meets
    config.env.solved = None
    folder = start(config, tmp_path / "run")
    for path in folder.path.glob("iterations/*/metrics.csv"):
        rows = MetricsTable(path).read()
        assert {row["attempt"] for row in rows} == {0}
        assert rows[-1]["frames"] == config.budget.frames


@pytest.mark.parametrize(
    ("setting", "value", "reason"),
    [("algorithm.speed", 3, "'speed'"), ("measure.name", "charm", "'charm'")],
)
def test_settings_of_another_version_get_a_clear_error(setting, value, reason) -> None:
    config = OmegaConf.create(small_config().as_dict())
    OmegaConf.update(config, setting, value)
    with pytest.raises(RunError, match=rf"does not fit this version of sipo_trl \(.*{reason}"):
        typed(config)
