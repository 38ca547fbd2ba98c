"""Calibration: a measure's threshold, scale and kernel width from two policies (SIPO, appendix)."""

import textwrap
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime
from functools import partial
from pathlib import Path

import torch
from omegaconf import DictConfig, OmegaConf

from sipo_trl.algorithms.calibration import VARIANCES, Calibration, calibrate, watch_config
from sipo_trl.algorithms.calibration_plot import plot_calibration
from sipo_trl.algorithms.itr import run_itr
from sipo_trl.training.command_line import CONF
from sipo_trl.training.config import ITRConfig
from sipo_trl.training.metrics import MetricsTable
from sipo_trl.training.program import Command, execute
from sipo_trl.training.reporting import Reporter
from sipo_trl.training.run_folder import RunError, RunFolder

ALGORITHM = "unconstrained"  # the name in conf/calibrate.yaml


@dataclass
class Options:
    """What is made of the two policies; to be given again with ``resume``."""

    c1: float = 1.2
    """The threshold in distances of the two policies (a similarity is divided): 1.2 or 1.4."""
    c2: float = 1.0
    """What a constraint may weigh at most, in returns of the task: about 1."""
    episodes: int = 64
    """How many episodes are played with each policy."""
    output: str | None = None
    """File of the measure; conf/measure/calibrated_<env>_<measure>.yaml if null."""
    overwrite: bool = False
    """Replace that file if it is there already."""

    def check(self) -> None:
        """Raises if a number makes no sense."""
        for name in ("c1", "c2", "episodes"):
            if getattr(self, name) <= 0:
                raise RunError(f"{name} is {getattr(self, name)}: give a number above 0.")


@dataclass
class CalibrateCommand(Command, Options):
    """The settings of the two trainings, and what is made of them."""

    iterations: int = 2
    """Two policies are compared: leave it."""


def main(command: DictConfig) -> None:
    """Calibrates a measure in a new run folder, or goes on in one.

    Args:
        command: a :class:`CalibrateCommand`, as Hydra composed it.
    """
    if command.extend is not None or command.iterations != 2:
        raise RunError("A calibration compares two policies: leave out extend and iterations.")
    if command.resume is None and command.env.views is not None:
        raise RunError(
            f"{command.env.name} is compared by pictures of a few states, and a calibration looks "
            "at all of them, which takes too long: set measure.delta and measure.alpha yourself, "
            "from the distances that a short launch/itr.py reports."
        )
    names = [field.name for field in fields(Options)]
    options = Options(**{name: command[name] for name in names})
    options.check()
    training = OmegaConf.masked_copy(command, [str(k) for k in command if k not in names])
    if command.resume is None:
        _refuse_existing(_output(options, command.env.name, command.measure.name), options)
        time = f"{datetime.now():%Y-%m-%d_%H-%M-%S}"
        training.run_dir = command.run_dir or f"runs/{command.env.name}/calibrate_{time}"
    execute(partial(run_calibration, options), training)


def run_calibration(
    options: Options, config: ITRConfig, folder: RunFolder, reporter: Reporter
) -> None:
    """Learns two policies without constraints and writes what they say about the measure.

    Started on a folder with policies or a checkpoint in it, this goes on where they end.

    Args:
        options: what is made of the policies.
        config: the settings of their trainings, and the measure to calibrate.
        folder: the run's folder, locked by the caller.
        reporter: is told about every update, and saves in between.
    """
    if config.algorithm.name != ALGORITHM:
        raise RunError(
            f"{folder.path} is no calibration, but a run of {config.algorithm.name}: give the "
            "folder that launch/calibrate.py named when it started."
        )
    run_itr(replace(config, measure=watch_config(config.measure)), folder, reporter)
    table = MetricsTable(folder.iteration(1) / "metrics.csv").read()
    curves = {
        variance: torch.tensor([row[f"measure_variance_{variance:g}"] for row in table])
        for variance in VARIANCES
        if f"measure_variance_{variance:g}" in table[0]
    }
    calibration = calibrate(
        config,
        folder.archive,
        curves,
        c1=options.c1,
        c2=options.c2,
        episodes=options.episodes,
    )
    findings = describe(calibration, config, options)
    for sentence in findings:
        reporter.say(sentence)
    picture = folder.path / "calibration.png"
    plot_calibration(calibration, curves, name=config.env.name).savefig(picture)
    reporter.say(f"Picture: {picture}")
    output = _output(options, config.env.name, config.measure.name)
    _write(output, _as_yaml(calibration, findings), options)
    use = f"python launch/itr.py +env={config.env.name} measure={output.stem}"
    reporter.say(f"Written: {output}" + (f"; use it with {use}" if _is_option(output) else ""))


def describe(calibration: Calibration, config: ITRConfig, options: Options) -> list[str]:
    """How the settings were found and how far they can be trusted, in sentences."""
    measure, similar = calibration.measure, calibration.similar
    noun, operator = ("similarity", "/") if similar else ("distance", "*")
    low, high = calibration.interval
    factor = 1 / options.c1 if similar else options.c1
    second, first = (episodes.mean().item() for episodes in calibration.episodes)
    returns = " and ".join(f"{value:.3g}" for value in calibration.returns)
    sentences = [
        f"Two policies learned {config.env.name} alone, {config.budget.frames} frames each, "
        f"seed {config.seed}: their returns are {returns}.",
        f"Their {noun} is {calibration.size:.4g}, in 95 % of bootstraps over {options.episodes} "
        f"episodes of each {low:.4g} to {high:.4g} ({second:.4g} of the second from the first, "
        f"{first:.4g} the other way).",
        f"delta = {noun} {operator} c1 = {measure.delta:g} ({low * factor:.4g} to "
        f"{high * factor:.4g}) with c1 = {options.c1:g}.",
        f"alpha = best return / (c2 * lambda_max * delta) = {measure.alpha:g} with "
        f"c2 = {options.c2:g} and lambda_max = {config.algorithm.multiplier.maximum:g}.",
    ]
    if calibration.variance is not None:
        trends = ", ".join(f"{v:g}: {r:+.2f}" for v, r in calibration.trends.items())
        why = "has the steepest" if calibration.clear else "is left as it was, without a clear"
        sentences.append(
            f"variance = {calibration.variance:g} {why} trend of the intrinsic reward while the "
            f"second policy learned (correlations with time by variance: {trends})."
        )
    return sentences


def _as_yaml(calibration: Calibration, findings: list[str]) -> str:
    """The measure as an option of the group ``measure``."""
    sentences = [
        "Found by launch/calibrate.py.",
        *findings,
        "Other seeds find other policies, of which the intervals know nothing.",
    ]
    comment = [
        textwrap.fill(sentence, 98, initial_indent="# ", subsequent_indent="#   ")
        for sentence in sentences
    ]
    settings = asdict(calibration.measure)
    name = settings.pop("name")
    return "\n".join(
        [
            *comment,
            "defaults:",
            f"  - /schema/measure@_here_: {name}",
            "  - _self_",
            OmegaConf.to_yaml(OmegaConf.create(settings)),
        ]
    )


def _output(options: Options, env: str, measure: str) -> Path:
    name = f"calibrated_{env}_{measure}.yaml"
    return CONF / "measure" / name if options.output is None else Path(options.output)


def _is_option(output: Path) -> bool:
    """Whether a program finds the file by the name of its option."""
    return output.absolute().parent == CONF / "measure"


def _refuse_existing(output: Path, options: Options) -> None:
    if output.exists() and not options.overwrite:
        raise RunError(
            f"{output} is there already: add overwrite=true, or give another file with output=."
        )


def _write(output: Path, text: str, options: Options) -> None:
    if output.exists() and output.read_text() == text:  # a finished calibration was resumed
        return
    _refuse_existing(output, options)
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(text)
    except OSError as error:
        raise RunError(f"Could not write {output}: {error.strerror or error}.") from error
