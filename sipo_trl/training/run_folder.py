"""The folder of one run: its settings, its archive, and the iteration under way."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from omegaconf import DictConfig, OmegaConf
from yaml import YAMLError

from sipo_trl.archive import Archive

CONFIG = "config.yaml"


class RunError(RuntimeError):
    """Something that a user can mend: one sentence, no traceback needed."""


class RunFolder:
    """``config.yaml``, ``archive/`` and ``iterations/0001/`` of a run.

    Args:
        path: the folder; made by :meth:`create`, found by :meth:`open`.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).absolute()

    @classmethod
    def create(cls, path: str | Path, config: DictConfig) -> "RunFolder":
        """Makes the folder of a new run and writes its settings, resolved."""
        folder = cls(path)
        if (folder.path / CONFIG).exists():
            raise RunError(
                f"{folder.path} already holds a run: continue it with resume={path}, "
                "or choose another run_dir."
            )
        with explained(f"make the run folder {folder.path}"):
            folder.path.mkdir(parents=True, exist_ok=True)
            Archive.create(folder.path / "archive")
            folder._write_config(config)  # last: with it the folder is a run
        return folder

    @classmethod
    def open(cls, path: str | Path) -> "RunFolder":
        """Finds the folder of a run that was begun before."""
        folder = cls(path)
        if not (folder.path / CONFIG).is_file():
            raise RunError(
                f"{folder.path} holds no run, since there is no {CONFIG} in it: "
                "give the folder that the run named when it started."
            )
        return folder

    @property
    def config(self) -> DictConfig:
        """The settings that the run was started with."""
        try:
            config = OmegaConf.load(self.path / CONFIG)
        except (YAMLError, UnicodeDecodeError) as error:
            reason = " ".join(str(error).split())
            raise RunError(f"{self.path / CONFIG} cannot be read: {reason}.") from error
        if not isinstance(config, DictConfig):
            raise RunError(f"{self.path / CONFIG} is damaged: settings with names were expected.")
        return config

    def rewrite(self, **settings: object) -> None:
        """Changes some of the run's settings."""
        with explained(f"write to {self.path}"):
            self._write_config(DictConfig(OmegaConf.merge(self.config, settings)))

    def _write_config(self, config: DictConfig) -> None:
        aside = self.path / f".{CONFIG}"
        aside.write_text(OmegaConf.to_yaml(config, resolve=True))
        aside.rename(self.path / CONFIG)

    @property
    def archive(self) -> Archive:
        """The run's finished policies."""
        return Archive.open(self.path / "archive")

    def iteration(self, index: int) -> Path:
        """Where iteration ``index``, counted from 0, keeps its checkpoints and metrics."""
        return self.path / "iterations" / f"{index + 1:04d}"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keeps every other process out of the run."""
        with explained(f"write to {self.path}"):
            handle = (self.path / ".lock").open("a+")
        with handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                handle.seek(0)
                raise RunError(
                    f"{self.path} is in use by process {handle.read().strip() or 'unknown'}: "
                    "wait for it or stop it, or choose another run_dir."
                ) from None
            handle.truncate(0)
            handle.write(str(os.getpid()))
            handle.flush()
            yield


@contextmanager
def explained(action: str) -> Iterator[None]:
    """Within, what the system refuses becomes one sentence about the action that failed."""
    try:
        yield
    except OSError as error:
        raise RunError(f"Could not {action}: {error.strerror or error}.") from error
