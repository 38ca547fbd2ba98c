"""Checkpoints of a training under way."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torchrl.checkpoint import (
    Checkpoint,
    CheckpointRotation,
    GlobalRNGState,
    StateDictCheckpointAdapter,
)

from sipo_trl.training.run_folder import RunError


class Checkpoints:
    """The last two checkpoints in a folder, each complete or not there at all.

    Whatever is saved, the state of all random generators goes with it.

    Args:
        folder: where they are kept.
    """

    def __init__(self, folder: Path) -> None:
        # Two, each under a name of its own: TorchRL replaces an existing one in two moves, and a
        # kill between them would leave none.
        self._rotation = CheckpointRotation(folder, keep_last=2)

    def save(self, components: Mapping[str, Any], *, step: int) -> None:
        """Writes the states of all components; ``step`` grows from one call to the next."""
        try:
            self._rotation.save(_bind(components), step=step)
        except OSError as error:
            raise RunError(
                f"Could not save a checkpoint to {self._rotation.directory}: "
                f"{error.strerror or error}. The one before it is still there: make room and "
                "resume the run."
            ) from error

    @property
    def exist(self) -> bool:
        """Whether there is one to go on from."""
        return self._rotation.latest() is not None

    @property
    def names(self) -> set[str]:
        """Which components the newest one holds."""
        path = self._rotation.latest()
        return set() if path is None else set(Checkpoint.manifest(path)["components"])

    def load(self, components: Mapping[str, Any]) -> None:
        """Restores the given components, and the random generators, from the newest one."""
        self._rotation.load_latest(_bind(components))

    def discard(self) -> None:
        """Removes them all."""
        shutil.rmtree(self._rotation.directory, ignore_errors=True)


def _bind(components: Mapping[str, Any]) -> Checkpoint:
    checkpoint = Checkpoint()
    for name, component in {**components, "rng": GlobalRNGState()}.items():
        checkpoint.register(name, component, adapter=StateDictCheckpointAdapter("consolidated"))
    return checkpoint
