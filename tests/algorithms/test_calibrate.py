import copy
import math
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hypothesis import given
from hypothesis import strategies as st
from omegaconf import OmegaConf
from running import Quiet, contents
from sklearn.metrics.pairwise import rbf_kernel
from tensordict import TensorDict

sys.path.append(str(Path(__file__).parents[1] / "training"))
from settings import small_config

from sipo_trl.algorithms import calibrate as program
from sipo_trl.algorithms import calibration, run_itr
from sipo_trl.algorithms.calibrate import CalibrateCommand, Options, run_calibration
from sipo_trl.algorithms.calibration import Calibration, Watch, WatchConfig
from sipo_trl.algorithms.calibration_plot import plot_calibration
from sipo_trl.archive import Archive
from sipo_trl.measures import RBFMeasure
from sipo_trl.training import Evaluation, RunError, RunFolder, command_line, evaluate, evaluation
from sipo_trl.training.config import (
    FinalStateConfig,
    ITRConfig,
    MeasureConfig,
    MultiplierConfig,
    RBFConfig,
    WassersteinConfig,
)

HORIZON, STEPS = 20, 5


def settings(measure: MeasureConfig) -> ITRConfig:
    """Two short unconstrained trainings, as conf/calibrate.yaml asks for them."""
    config = small_config(measure)
    config.env.horizon = HORIZON
    config.algorithm = replace(
        config.algorithm,
        name="unconstrained",
        rewards="summed",
        tries=1,
        multiplier=MultiplierConfig(fixed=True, maximum=8.0),
    )
    return config


def episodes(place: float, number: int = 6, reward: float = 0.5) -> Evaluation:
    """Episodes that stay in one place."""
    grid = torch.arange(number * STEPS)
    columns = TensorDict(
        {
            "states": torch.full((number * STEPS, 1), place),
            "step": grid % STEPS,
            "episode": grid // STEPS,
        }
    ).auto_batch_size_(1)
    lengths = torch.full((number,), STEPS)
    none = torch.empty(0)
    return Evaluation(columns, torch.full((number,), reward), lengths > 0, lengths, none)


@pytest.fixture
def known(tmp_path, monkeypatch):
    """Calibrates on two policies that stay in the places 0 and ``place``."""

    def known(
        measure: MeasureConfig,
        place: float = 1.0,
        curves: dict[float, torch.Tensor] | None = None,
        rewards: tuple[float, float] = (0.25, 0.5),
        c2: float = 1.0,
    ) -> Calibration:
        archive = Archive.create(tmp_path / "archive")
        played = [episodes(0.0, reward=rewards[0]), episodes(place, reward=rewards[1])]
        for some in played:
            archive.append(some.columns)
        monkeypatch.setattr(calibration, "_play", lambda config, archive, i, number: played[i])
        return calibration.calibrate(
            settings(measure), archive, curves or {}, c1=1.2, c2=c2, episodes=6
        )

    return known


def test_a_similarity_is_divided_by_c1(known) -> None:
    found = known(RBFConfig(variance=0.3, normalize=False, per_dimension=False))
    similarity = STEPS / HORIZON * math.exp(-1 / 0.6)
    assert found.similar
    assert found.size == pytest.approx(similarity, rel=1e-5)
    assert found.measure.delta == pytest.approx(similarity / 1.2, rel=1e-3)
    # The better return is 0.5, and the multipliers' maximum 8.
    assert found.measure.alpha == pytest.approx(0.5 / (8 * similarity / 1.2), rel=1e-3)
    assert found.interval == pytest.approx((similarity, similarity), rel=1e-5)
    assert found.measure.variance == found.variance == 0.3


def test_a_distance_is_multiplied_by_c1(known) -> None:
    found = known(FinalStateConfig(), place=3.0, c2=2.0)
    assert not found.similar
    assert found.size == 3.0  # at the last step only
    assert found.measure.delta == pytest.approx(3.6)
    assert found.measure.alpha == pytest.approx(0.5 / (2 * 8 * 3.6), rel=1e-3)
    assert found.variance is None


def test_ends_within_a_radius_are_a_similarity(known) -> None:
    found = known(FinalStateConfig(radius=2.0))
    assert found.similar
    assert found.measure.delta == pytest.approx(1 / 1.2, rel=1e-3)


def test_wasserstein_critics_have_learned_all_they_can(known, monkeypatch, tmp_path) -> None:
    found = known(WassersteinConfig(normalize=False), place=5.0)
    assert not found.similar
    assert found.size > 0
    assert found.measure.delta == pytest.approx(1.2 * found.size, rel=1e-3)
    monkeypatch.setattr(evaluation, "CRITIC_UPDATES", 2 * evaluation.CRITIC_UPDATES)
    shutil.rmtree(tmp_path / "archive")
    longer = known(WassersteinConfig(normalize=False), place=5.0)
    assert found.size == pytest.approx(longer.size, rel=0.01)


def test_the_steepest_trend_decides_whatever_its_size_or_sign(known) -> None:
    time = torch.linspace(0, 1, 30)
    noise = torch.randn(30)
    curves = {0.001: 1e-6 * noise, 0.01: -1e-3 * (time + 0.05 * noise), 0.1: time + 0.5 * noise}
    found = known(RBFConfig(variance=0.02), place=0.1, curves=curves)
    assert found.variance == 0.01
    assert found.trends[0.01] < -0.9
    assert found.clear


def test_noise_decides_nothing(known) -> None:
    curves = {v: torch.tensor([0.0, 1.0] * 20) for v in (0.001, 0.1)}
    found = known(RBFConfig(variance=0.5), curves=curves)
    assert found.variance == 0.5
    assert not found.clear


@pytest.mark.parametrize(
    ("measure", "place", "rewards", "sentence"),
    [
        (FinalStateConfig(radius=0.5), 1.0, (1.0, 1.0), "have nothing in common under this"),
        (RBFConfig(normalize=False), 9.0, (1.0, 1.0), "have nothing in common under this"),
        (FinalStateConfig(), 0.0, (1.0, 1.0), "cannot be told apart under this measure"),
        (FinalStateConfig(), 1.0, (0.0, 0.0), "Neither policy earned anything"),
    ],
    ids=["ends", "kernel", "same", "return"],
)
def test_where_there_is_no_scale_it_says_so(known, measure, place, rewards, sentence) -> None:
    with pytest.raises(RunError, match=sentence):
        known(measure, place=place, rewards=rewards)


@given(
    st.lists(st.integers(-99, 99), min_size=3, max_size=20).filter(lambda x: len(set(x)) > 1),
    st.sampled_from([1e-4, 1.0, 1e4]),
)
def test_a_trend_is_the_slope_in_standard_deviations(curve: list[int], scale: float) -> None:
    time, values = np.arange(len(curve)), np.array(curve) * scale
    slope = np.polyfit(time, values, 1)[0]
    found = calibration.trend(torch.tensor(values))
    assert found == pytest.approx(slope * time.std() / values.std(), abs=1e-9)


def test_bootstraps_agree_with_the_normal_distribution() -> None:
    first, second = torch.randn(400), 3 * torch.randn(900) + 5
    low, high = calibration.bootstrap(first, second, seed=0)
    middle = (first.mean() + second.mean()).item() / 2
    half = 1.96 * math.hypot(first.std().item() / 20, second.std().item() / 30) / 2
    assert low == pytest.approx(middle - half, abs=0.1 * half)
    assert high == pytest.approx(middle + half, abs=0.1 * half)
    assert (low, high) == calibration.bootstrap(first, second, seed=0)
    assert (low, high) != calibration.bootstrap(first, second, seed=1)


@pytest.mark.parametrize(
    "measure", [RBFConfig(variance=0.3), FinalStateConfig(), FinalStateConfig(radius=0.3)], ids=str
)
def test_the_distance_of_episodes_is_that_of_iterative_learning(measure) -> None:
    config = settings(measure)
    made = measure.make([torch.randn(30, 2), torch.randn(9, 2)], horizon=HORIZON)
    env = config.env.make(7, seed=0)
    played = evaluate(env, env.rand_action, made, horizon=HORIZON, exploration="sample")
    found = calibration.episode_distances(made, played)
    assert found.shape == (7, 2)
    torch.testing.assert_close(found.mean(0), played.distances)


def test_watching_gives_mean_rewards_and_asks_for_nothing() -> None:
    references, states = torch.randn(20, 3), torch.randn(4, 10, 3)
    kernel = RBFMeasure([references], variance=0.8, normalize=False, per_dimension=False)
    watch = Watch([references], {"kernel": kernel})
    expected = -rbf_kernel(states.flatten(0, 1), references, gamma=1 / 1.6).mean()
    assert watch.update(states)["kernel"].item() == pytest.approx(expected, rel=1e-5)
    assert not watch.reward(states).any()
    assert watch.threshold(3.0) == -math.inf
    assert not Watch([], {"kernel": RBFMeasure([])}).update(states).keys()


def test_watching_disturbs_nothing(tmp_path) -> None:
    weights = []
    for name, watched in [("with", RBFConfig()), ("without", FinalStateConfig())]:
        config = settings(calibration.watch_config(watched))
        folder = RunFolder.create(tmp_path / name, OmegaConf.create({}))
        run_itr(config, folder, Quiet())
        weights.append([dict(entry.load_policy().state_dict()) for entry in folder.archive])
    for watched, alone in zip(*weights, strict=True):
        assert all(torch.equal(watched[name], alone[name]) for name in alone)
    first, second = weights[0]
    assert not all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize(
    "measure", [RBFConfig(), WassersteinConfig(), FinalStateConfig()], ids=["rbf", "wd", "final"]
)
def test_a_stopped_calibration_goes_on_exactly(measure, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(evaluation, "CRITIC_UPDATES", 5)
    config = settings(measure)

    def calibrate(name: str, reporter: Quiet) -> tuple[dict[str, str], str]:
        output = tmp_path / f"{name}.yaml"
        path = tmp_path / name
        folder = (
            RunFolder.open(path)
            if path.exists()
            else RunFolder.create(path, OmegaConf.create({"env": "navigation"}))
        )
        options = Options(output=str(output), episodes=16)
        run_calibration(options, copy.deepcopy(config), folder, reporter)
        return contents(folder), output.read_text()

    whole = calibrate("whole", Quiet())
    assert calibrate("whole", Quiet()) == whole  # finished, so that nothing changes
    with pytest.raises(KeyboardInterrupt):
        calibrate("stopped", Quiet(save_at=11, stop_at=13))
    assert calibrate("stopped", Quiet()) == whole


def test_the_picture_shows_both_ways_and_all_widths(known) -> None:
    curves = {v: torch.linspace(0, -v, 9) + 1e-4 * torch.randn(9) for v in calibration.VARIANCES}
    found = known(RBFConfig(), place=0.1, curves=curves)
    figure = plot_calibration(found, curves, name="somewhere")
    titles = [axes.get_title(loc="left") for part in figure.subfigs for axes in part.axes]
    assert titles[:2] == ["policy 2 from policy 1", "policy 1 from policy 2"]
    assert len(titles) == 2 + len(curves)
    (chosen,) = [title for title in titles if "chosen" in title]
    assert f"= {found.variance:g}:" in chosen
    histogram = figure.subfigs[0].axes[0]
    assert sum(bar.get_height() for bar in histogram.patches if bar.get_width() > 0) >= 6
    thresholds = [line.get_xdata()[0] for line in histogram.lines]
    assert thresholds == [found.size, found.measure.delta]


@pytest.fixture
def call(monkeypatch, capsys, tmp_path):
    """Runs the program as if from a shell, with a copy of conf/ to write to."""
    conf = tmp_path / "conf"
    shutil.copytree(command_line.CONF, conf)
    for module in (command_line, program):
        monkeypatch.setattr(module, "CONF", conf)
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> tuple[int, str, str]:
        GlobalHydra.instance().clear()
        monkeypatch.setattr(sys, "argv", ["calibrate.py", *arguments])
        code = 0
        try:
            command_line.launch("calibrate", CalibrateCommand, program.main)
        except SystemExit as stop:
            code = int(stop.code or 0)
        return code, *capsys.readouterr()

    return call


SMALL = (
    "+env=navigation",
    "measure=rbf",
    "env.horizon=60",
    "collector.num_envs=8",
    "collector.frames_per_batch=80",
    "network.hidden=[8]",
    "ppo.epochs=1",
    "budget.frames=400",
)


def test_the_program_writes_a_measure_that_itr_can_use(call, tmp_path) -> None:
    code, output, errors = call(*SMALL)
    assert (code, errors) == (0, "")
    (run,) = (tmp_path / "runs" / "navigation").iterdir()
    assert run.name.startswith("calibrate_")
    assert (run / "calibration.png").read_bytes().startswith(b"\x89PNG")
    written = tmp_path / "conf" / "measure" / "calibrated_navigation_rbf.yaml"
    use = "python launch/itr.py +env=navigation measure=calibrated_navigation_rbf"
    assert f"Written: {written}; use it with {use}\n" in output
    assert "# Their similarity is " in written.read_text()

    measure = OmegaConf.load(written)
    GlobalHydra.instance().clear()
    command_line._register("itr", program.Command)
    with initialize_config_dir(str(tmp_path / "conf"), version_base="1.3"):
        config = compose("itr", ["+env=navigation", "measure=calibrated_navigation_rbf"])
    assert OmegaConf.to_object(config.measure) == RBFConfig(
        delta=measure.delta,
        alpha=measure.alpha,
        variance=measure.variance,
        unit=measure.delta,
        normalize=False,  # as navigation has it
    )

    code, _, errors = call(*SMALL)
    assert code == 2
    assert "is there already: add overwrite=true, or give another file with output=" in errors
    assert len(list((tmp_path / "runs" / "navigation").iterdir())) == 1  # before any training

    assert call(f"resume={run}")[0] == 0
    assert OmegaConf.load(written) == measure
    assert call(f"resume={run}", "c1=2.4", "c2=0.5", "output=other.yaml")[0] == 0
    other = OmegaConf.load(tmp_path / "other.yaml")
    assert other.delta == pytest.approx(measure.delta / 2, rel=1e-3)
    assert other.alpha == pytest.approx(measure.alpha * 4, rel=1e-3)

    for argument in ("c1=0", "episodes=-1"):
        code, _, errors = call(f"resume={run}", argument, "overwrite=true")
        assert (code, errors.count("\n")) == (2, 1)
        assert "give a number above 0." in errors


def test_a_calibration_takes_two_policies_of_its_own(call, tmp_path) -> None:
    code, _, errors = call(*SMALL, "iterations=3")
    assert (code, errors) == (
        2,
        "A calibration compares two policies: leave out extend and iterations.\n",
    )
    RunFolder.create(tmp_path / "other", OmegaConf.structured(small_config()))
    code, _, errors = call("resume=other")
    assert code == 2
    assert "other is no calibration, but a run of test: give the folder that" in errors


def test_watched_settings_are_kept_as_plain_data() -> None:
    config = settings(calibration.watch_config(RBFConfig()))
    assert isinstance(config.measure, WatchConfig)
    watched = config.as_dict()["measure"]["watched"]
    assert [some["variance"] for some in watched.values()] == list(calibration.VARIANCES)


def test_what_is_compared_by_pictures_is_refused() -> None:
    env = {"name": "humanoid_visual", "views": 256}
    command = OmegaConf.create({"extend": None, "resume": None, "iterations": 2, "env": env})
    with pytest.raises(RunError, match=r"humanoid_visual is compared by pictures .* set measure"):
        program.main(command)
