import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import torch
from hydra.core.global_hydra import GlobalHydra
from omegaconf import DictConfig

from sipo_trl.algorithms import run_itr
from sipo_trl.archive import ArchiveError
from sipo_trl.envs import EnvError
from sipo_trl.training import RunError, RunFolder
from sipo_trl.training.command_line import launch
from sipo_trl.training.program import Command, execute

REPOSITORY = Path(__file__).parents[2]
SMALL = (
    "+env=navigation",
    "env.horizon=20",
    "collector.num_envs=8",
    "collector.frames_per_batch=80",
    "network.hidden=[8]",
    "ppo.epochs=1",
    "budget.frames=160",
    "algorithm.tries=1",
)
ITR = partial(execute, run_itr)
Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(monkeypatch, capsys, tmp_path) -> Call:
    """Runs the program as if from a shell: exit code, output and errors."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str, main: Callable[[DictConfig], None] = ITR) -> tuple[int, str, str]:
        GlobalHydra.instance().clear()
        monkeypatch.setattr(sys, "argv", ["itr.py", *arguments])
        code = 0
        try:
            launch("itr", Command, main)
        except SystemExit as stop:
            code = int(stop.code or 0)
        return code, *capsys.readouterr()

    return call


@pytest.fixture
def compose(call) -> Callable[..., list[DictConfig]]:
    """The settings that the program would run with."""

    def compose(*arguments: str) -> list[DictConfig]:
        seen: list[DictConfig] = []
        assert call(*arguments, main=seen.append) == (0, "", "")
        return seen

    return compose


def test_without_an_environment_it_lists_them(call) -> None:
    code, output, errors = call()
    assert (code, output) == (2, "")
    first, *envs, last = errors.splitlines()
    assert (first, last) == ("Choose an environment:", "--help explains all the rest.")
    assert "  +env=navigation" in envs
    assert len(envs) == len(list((REPOSITORY / "conf" / "env").glob("*.yaml")))
    assert call("measure=rbf", "seed=3") == (code, output, errors)


def test_nobody_has_to_know_about_the_plus(compose) -> None:
    assert compose("env=navigation") == compose("+env=navigation")
    assert compose("env=navigation", "+seed=3")[0].seed == 3
    for plus in ("", "+", "++"):
        (config,) = compose("env=navigation", "logger=wandb", f"{plus}logger.options.project=mine")
        assert config.logger.options == {"project": "mine"}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["+env=navigaton"], "There is no env=navigaton. Did you mean navigation? Choose one of"),
        (["measure=rfb"], "There is no measure=rfb. Did you mean rbf? Choose one of "),
        (["measure=zzz"], "There is no measure=zzz. Choose one of "),
        (["mesure=rbf"], "There is no setting mesure. Did you mean measure? --help lists all"),
        (["ppo.clp=0.1"], "There is no setting ppo.clp. Did you mean ppo.clip? --help lists all"),
        (["env.horzon=9"], "There is no setting env.horzon. Did you mean env.horizon? --help"),
        (["measure=rbf", "measure.varance=1"], "measure.varance. Did you mean measure.variance?"),
        (["+ppo.clp=0.1"], "There is no setting ppo.clp. Did you mean ppo.clip?"),
        (["+qqqq=1"], "There is no setting qqqq. --help lists all settings."),
        (["ppo.clip=abc"], "ppo.clip: Value 'abc' of type 'str' could not be converted to Float."),
        (["seed="], "seed: Value '' of type 'str' could not be converted to Integer."),
        (["ppo=3"], "ppo: Invalid type assigned: int is not a subclass of PPOConfig. value: 3."),
        (["seed"], "seed cannot be read as name=value: put quotes around"),
        (["ppo.discount=[1"], "ppo.discount=[1 cannot be read as name=value: put quotes around"),
        (["seed=0,1"], "seed=0,1 is more than one value: add --multirun to run one after the"),
        (["ppo.precision=half"], "ppo.precision is 'half': choose one of float32, bfloat16."),
        (["measure=wd", "measure.precision=half"], "choose one of float32, bfloat16, auto."),
        (["resume=nowhere"], "A run goes on with its own settings: leave out env, or start a new"),
        (
            ["collector.num_envs=7", "collector.frames_per_batch=80"],
            "collector.frames_per_batch is 80, which is no multiple of collector.num_envs, 7: "
            "every copy makes the same number of steps.",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_mistake_gets_one_sentence(call, arguments: list[str], sentence: str) -> None:
    env = [] if arguments[0].startswith("+env") else ["+env=navigation"]
    code, output, errors = call(*env, *arguments)
    assert (code, output) == (2, "")
    assert sentence in errors
    assert errors.count("\n") == 1
    assert errors.endswith(".\n")


def test_several_runs_stand_anywhere_on_the_line_and_are_checked(call, compose, tmp_path) -> None:
    runs = compose("env=navigation", "--multirun", "seed=3,4", "measure=rbf")
    assert [config.seed for config in runs] == [3, 4]
    assert not list(tmp_path.glob("*.yaml"))
    code, _, errors = call("env=navigation", "-m", "collector.num_envs=7", "seed=0,1")
    assert code == 2
    assert errors.startswith("collector.frames_per_batch is ")
    assert errors.count("\n") == 1


def test_help_may_be_cut_short() -> None:
    command = [sys.executable, str(REPOSITORY / "launch" / "itr.py"), "--help"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout is not None
        assert program.stderr is not None
        program.stdout.close()  # before anything was written
        assert program.stderr.read() == ""
    assert program.returncode == 0


def test_help_and_settings_are_printed(call) -> None:
    code, output, errors = call("--help")
    assert (code, errors) == (0, "")
    groups = ("env", "measure", "algorithm", "collector", "budget", "logger")
    assert all(re.search(rf"^{group}: \w", output, re.MULTILINE) for group in groups)
    assert "resume=RUN" in output
    assert "${hydra" not in output
    code, output, errors = call("--cfg", "job", "env=navigation", "seed=7")
    assert (code, errors) == (0, "")
    assert "name: navigation\n" in output
    assert "\nseed: 7\n" in output


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (RunError("No room."), "No room.\n"),
        (ArchiveError("Damaged."), "Damaged.\n"),
        (KeyboardInterrupt(), "Stopped at once: resume= goes on from the last checkpoint.\n"),
    ],
    ids=["run", "archive", "hurry"],
)
def test_what_a_user_can_mend_is_said_without_a_traceback(call, error, sentence: str) -> None:
    def main(config: DictConfig) -> None:
        raise error

    assert call("env=navigation", main=main) == (2, "", sentence)


def test_a_mistake_of_ours_keeps_its_traceback(call) -> None:
    def main(config: DictConfig) -> None:
        raise ZeroDivisionError("ours")

    code, _, errors = call("env=navigation", main=main)
    assert code == 1
    assert "ZeroDivisionError: ours" in errors


def test_a_run_from_its_start_to_its_extension(call, tmp_path) -> None:
    code, output, errors = call(*SMALL, "iterations=1", "run_dir=run")
    assert (code, errors) == (0, "")
    run, archive = tmp_path / "run", RunFolder.open(tmp_path / "run").archive
    assert output.startswith(f"Run folder: {run}\nPolicy 1: return ")
    assert output.endswith(f"Finished: 1 policies in {run / 'archive'}\n")
    assert len(archive) == 1
    assert archive[0].config["network"]["hidden"] == [8]

    code, _, errors = call(*SMALL, "run_dir=run")
    assert (code, errors.count("\n")) == (2, 1)
    assert "run already holds a run: continue it with resume=run" in errors

    assert call("resume=run")[0] == 0  # finished, so that there is nothing to do
    code, _, errors = call("resume=run", "iterations=2", "seed=1")
    assert code == 2
    assert "leave out iterations, seed, or start a new run." in errors

    code, _, errors = call("extend=run", "iterations=1")
    assert code == 2
    assert "already holds 1 policies: ask for more than that" in errors
    assert len(RunFolder.open(run).archive) == 1

    assert call("extend=run", "iterations=2")[0] == 0
    assert len(RunFolder.open(run).archive) == 2


@pytest.mark.parametrize("way", ["resume", "extend"])
def test_what_is_no_run_is_named(call, way: str, tmp_path) -> None:
    code, output, errors = call(f"{way}={tmp_path}")
    assert (code, output) == (2, "")
    assert errors.startswith(f"{tmp_path} holds no run, since there is no config.yaml in it")


def test_ctrl_c_saves_and_tells_how_to_go_on(call, tmp_path) -> None:
    program = [sys.executable, str(REPOSITORY / "launch" / "itr.py")]
    process = subprocess.Popen(
        [*program, *SMALL, "iterations=10000", "run_dir=run", "algorithm.settle=0"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    run = tmp_path / "run"
    while not list(run.glob("iterations/*/metrics.csv")) and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate()
    assert process.returncode == 2, errors
    assert "Stopping after this update ..." in output
    assert errors.startswith("Stopped and saved.")
    assert errors.endswith(f"resume={run}\n")

    folder = RunFolder.open(run)
    done = len(folder.archive)
    assert list(folder.iteration(done).glob("checkpoints/*"))
    folder.rewrite(iterations=done + 1)
    assert call(f"resume={run}")[0] == 0
    assert len(folder.archive) == done + 1


@pytest.mark.parametrize(("wish", "threads"), [(None, 1), ("2", 2)])
def test_one_thread_computes_unless_the_environment_asks_for_more(call, wish, threads, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if wish:
        monkeypatch.setenv("OMP_NUM_THREADS", wish)
    seen = []
    torch.set_num_threads(2)  # what torch reads from the environment when it is imported
    try:
        code, _, _ = call(*SMALL, main=lambda _: seen.append(torch.get_num_threads()))
    finally:
        torch.set_num_threads(1)
    assert (code, seen) == (0, [threads])


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (["env.backend=bullet"], "backend is 'bullet': choose from mujoco, mujoco_warp, or"),
        (["env.backend=isaacgym"], "env.backend=isaacgym needs env.isaac_python=PATH"),
        (["env.backend=isaacgym", "env.isaac_python=nowhere"], "isaac_python='nowhere' cannot be"),
        (["env.backend=isaaclab"], "backend isaaclab needs Isaac Lab"),
        (["+env=smac_2m_vs_1z", "env.backend=sc2"], "There is no StarCraft II in nowhere"),
    ],
)
def test_an_environment_that_cannot_be_made_is_one_sentence(call, settings, sentence, monkeypatch):
    monkeypatch.setenv("SC2PATH", "nowhere")
    env = [] if settings[0].startswith("+env") else ["+env=humanoid"]
    code, _, errors = call(*env, *settings)
    assert code == 2
    assert errors.startswith(sentence)
    assert errors.count("\n") == 1


def test_an_engine_that_fails_on_the_way_is_no_traceback(call):
    def main(config: DictConfig) -> None:
        raise EnvError("The engine ended: start it again.")

    assert call(*SMALL, main=main) == (2, "", "The engine ended: start it again.\n")
