"""Iterative learning (SIPO, algorithm 1): one policy after another, each away from all before."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from omegaconf import DictConfig, OmegaConf

from sipo_trl.training.config import ENVS, MEASURES, ITRConfig
from sipo_trl.training.iteration import Iteration
from sipo_trl.training.loggers import make_logger
from sipo_trl.training.reporting import Interrupted, Reporter
from sipo_trl.training.run_folder import RunError, RunFolder


@dataclass
class ITRCommand(ITRConfig):
    """The settings, and what to do with them."""

    run_dir: str | None = None
    """Folder of the run; runs/<env>/<time> if null."""
    resume: str | None = None
    """Folder of a run that was stopped, to go on with as if it had not been."""
    extend: str | None = None
    """Folder of a finished run, to add policies to until there are `iterations`."""


def main(command: DictConfig) -> None:
    """Starts, resumes or extends a run.

    Args:
        command: an :class:`ITRCommand`, as Hydra composed it.
    """
    folder = _open_folder(command)
    with folder.locked():
        config = typed(folder.config)
        reporter = Reporter(config.iterations, logger=make_logger(config.logger, folder.path))
        reporter.say(f"Run folder: {folder.path}")
        try:
            with reporter.interruptible():
                run_itr(config, folder, reporter)
        except Interrupted:
            raise RunError(
                f"Stopped and saved. Go on with: python launch/itr.py resume={folder.path}"
            ) from None
        reporter.say(f"Finished: {len(folder.archive)} policies in {folder.path / 'archive'}")


def run_itr(config: ITRConfig, folder: RunFolder, reporter: Reporter) -> None:
    """Learns policies until the run's archive holds ``config.iterations`` of them.

    Started on a folder with an archive or a checkpoint in it, this goes on where they end.

    Args:
        config: the settings.
        folder: the run's folder, locked by the caller.
        reporter: is told about every update and outcome, and saves in between.
    """
    archive = folder.archive
    while len(archive) < config.iterations:
        iteration = Iteration(config, archive, folder.iteration(len(archive)))
        reporter.begin(iteration)
        outcome = iteration.run(reporter.update)
        archive.append(
            outcome.evaluation.columns,
            policy=outcome.actor,
            metrics={**outcome.evaluation.metrics(), "multipliers": outcome.multipliers},
            config=config.as_dict(),
        )
        reporter.end(iteration, outcome)
        iteration.discard_checkpoints()


def typed(config: DictConfig) -> ITRConfig:
    """The dataclass behind settings that were read from a file."""
    base = ITRConfig(env=ENVS[config.env.name](), measure=MEASURES[config.measure.name]())
    merged: Any = OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(base), config))
    return merged


def _open_folder(command: DictConfig) -> RunFolder:
    if command.resume is not None:
        return RunFolder.open(command.resume)
    if command.extend is not None:
        folder = RunFolder.open(command.extend)
        if len(folder.archive) >= command.iterations:
            raise RunError(
                f"{folder.path} already holds {len(folder.archive)} policies: "
                f"ask for more than that with iterations=, not {command.iterations}."
            )
        folder.rewrite(iterations=command.iterations)
        return folder
    time = f"{datetime.now():%Y-%m-%d_%H-%M-%S}"
    path = command.run_dir or f"runs/{command.env.name}/{time}"
    settings = OmegaConf.masked_copy(
        command, [key for key in command if key not in ("run_dir", "resume", "extend")]
    )
    return RunFolder.create(path, settings)
