"""What the programs that learn have in common: start, resume or extend a run, and tell how."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from sipo_trl.envs.config import ENVS
from sipo_trl.training.config import MEASURES, ITRConfig
from sipo_trl.training.loggers import make_logger
from sipo_trl.training.reporting import Interrupted, Reporter
from sipo_trl.training.run_folder import RunError, RunFolder

Algorithm = Callable[[ITRConfig, RunFolder, Reporter], None]


@dataclass
class Command(ITRConfig):
    """The settings, and what to do with them."""

    run_dir: str | None = None
    """Folder of the run; runs/<env>/<time> if null."""
    resume: str | None = None
    """Folder of a run that was stopped, to go on with as if it had not been."""
    extend: str | None = None
    """Folder of a finished run, to add policies to until there are `iterations`."""


def execute(algorithm: Algorithm, command: DictConfig) -> None:
    """Runs an algorithm in the run folder that a command asks for.

    Args:
        algorithm: what to run, such as :func:`~sipo_trl.algorithms.run_itr`.
        command: a :class:`Command`, as Hydra composed it.
    """
    folder = _open_folder(command)
    with folder.locked():
        config = typed(folder.config)
        reporter = Reporter(logger=make_logger(config.logger, folder.path))
        reporter.say(f"Run folder: {folder.path}")
        try:
            with reporter.interruptible():
                algorithm(config, folder, reporter)
        except Interrupted:
            raise RunError(
                f"Stopped and saved. To go on, call the same program with resume={folder.path}"
            ) from None
        reporter.say(f"Finished: {len(folder.archive)} policies in {folder.path / 'archive'}")


def typed(config: DictConfig) -> ITRConfig:
    """The dataclass behind settings that were read from a file."""
    try:
        base = ITRConfig(env=ENVS[config.env.name](), measure=MEASURES[config.measure.name]())
        merged: Any = OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(base), config))
    except (KeyError, OmegaConfBaseException) as error:
        reason = str(error).splitlines()[0]
        raise RunError(
            f"The run's config.yaml does not fit this version of sipo_trl ({reason}): go on with "
            "the version that made it, or mend that line."
        ) from error
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
        command, [str(key) for key in command if key not in ("run_dir", "resume", "extend")]
    )
    return RunFolder.create(path, settings)
