"""Loggers beside the run folder's own metrics."""

from pathlib import Path

from torchrl.record.loggers import Logger, get_logger

from sipo_trl.training.config import LoggerConfig
from sipo_trl.training.run_folder import RunError


def make_logger(config: LoggerConfig, folder: Path) -> Logger | None:
    """TorchRL's logger of that name; ``None`` for csv, which is written anyway.

    Args:
        config: which one, and its options.
        folder: the run's folder, whose name the run gets.
    """
    if config.backend == "csv":
        return None
    try:
        return get_logger(
            config.backend,
            str(folder / "logs"),
            folder.name,
            **{f"{config.backend}_kwargs": config.options},
        )
    except (ImportError, NotImplementedError) as error:
        raise RunError(
            f"logger={config.backend} cannot be used ({error}): install it with "
            f"pip install {config.backend}, or use logger=csv."
        ) from error
