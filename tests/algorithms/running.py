"""Runs of iterative learning, and what they leave behind."""

import hashlib
from pathlib import Path

from omegaconf import OmegaConf

from sipo_trl.algorithms import run_itr
from sipo_trl.training import Iteration, Reporter, RunFolder
from sipo_trl.training.config import ITRConfig
from sipo_trl.training.metrics import Row


class Quiet(Reporter):
    """Saves when told to, and says nothing."""

    def __init__(self, save_at: int = 0, stop_at: int = 0) -> None:
        super().__init__(save_every=1e9)
        self.save_at, self.stop_at, self.seen = save_at, stop_at, 0

    def update(self, iteration: Iteration, row: Row) -> None:
        self.seen += 1
        if self.seen == self.save_at:
            iteration.save()
        if self.seen == self.stop_at:
            raise KeyboardInterrupt

    def end(self, *_: object) -> None:
        pass


def start(config: ITRConfig, path: Path, reporter: Reporter | None = None) -> RunFolder:
    """A new run, or the one that is there already, to its end."""
    if (path / "config.yaml").exists():
        folder = RunFolder.open(path)
    else:
        folder = RunFolder.create(path, OmegaConf.structured(config))
    run_itr(config, folder, reporter or Quiet())
    return folder


def contents(folder: RunFolder) -> dict[str, str]:
    """Digests of all files that a finished run keeps."""
    files = [path for path in sorted(folder.path.rglob("*")) if path.is_file()]
    return {
        str(path.relative_to(folder.path)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
        if path.name != ".lock"
    }
