"""The archive of finished policies."""

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tensordict import TensorDictBase
from torch import Tensor, nn

from sipo_trl.archive._columns import collect_columns
from sipo_trl.archive._document import DOCUMENT, Document
from sipo_trl.archive._files import (
    REMEDY,
    exclusive,
    plain,
    report_failure,
    seal,
    sync,
    write_json,
)
from sipo_trl.archive._manifest import ENTRIES, MANIFEST, Manifest, entry_name
from sipo_trl.archive._policy import describe_policy
from sipo_trl.archive._tensors import mean_and_std, write_tensors
from sipo_trl.archive.entry import Entry
from sipo_trl.archive.error import ArchiveError

_ASIDE = ".append"


class Archive:
    """Finished policies and the states that they visited, on disk, one entry per policy.

    An archive only grows. An entry appears in it at one stroke, once it is complete on disk, so
    that a run killed at any moment leaves a good archive. Reading one never runs code from it and
    never writes to it. Make archives with :meth:`create` and :meth:`open`.

    Args:
        path: the folder of the archive.
        verify: whether a file's SHA-256 is checked before the file is first used.

    Example:
        >>> import tempfile, torch
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     archive = Archive.create(folder)
        ...     _ = archive.append(torch.tensor([[0.0], [2.0]]), metrics={"return": 7})
        ...     _ = archive.append(torch.randn(5, 1), metrics={"return": 8})
        ...     archive = Archive.open(folder)
        ...     [entry.metrics["return"] for entry in archive], archive.state_mean
        ([7, 8], tensor([1.]))
    """

    def __init__(self, path: str | os.PathLike[str], *, verify: bool = True) -> None:
        self.path = Path(path).absolute()
        self._verify = verify
        self._entries: list[Entry] = []
        self._load()

    @classmethod
    def create(cls, path: str | os.PathLike[str]) -> "Archive":
        """Make a new, empty archive.

        Args:
            path: the folder to make; it may exist if it is empty.

        Example:
            >>> import tempfile
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     len(Archive.create(f"{folder}/archive"))
            0
        """
        folder = Path(path).absolute()
        with report_failure(f"create an archive at {folder}"):
            _refuse_occupied(folder)
            folder.mkdir(parents=True, exist_ok=True)
            with exclusive(folder):
                _refuse_occupied(folder)
                Manifest().write(folder)
                (folder / ENTRIES).mkdir()
            sync(folder.parent)
        return cls(folder)

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, verify: bool = True) -> "Archive":
        """Open an archive, for reading or for appending.

        This takes milliseconds however many states there are: all files must be there with their
        sizes, but none is read yet.

        Args:
            path: the folder of the archive.
            verify: whether a file's SHA-256 is checked before the file is first used. Without it a
                big file is there at once, and damage to it goes unnoticed.

        Example:
            >>> import tempfile
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     _ = Archive.create(folder)
            ...     len(Archive.open(folder))
            0
        """
        return cls(path, verify=verify)

    def __len__(self) -> int:
        return len(self._entries)

    def __getitem__(self, index: int) -> Entry:
        if not -len(self) <= index < len(self):
            raise IndexError(f"{self.path}: there is no entry {index} among {len(self)}.")
        return self._entries[index]

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries)

    def __repr__(self) -> str:
        return f"Archive({str(self.path)!r}, entries={len(self)})"

    @property
    def state_mean(self) -> Tensor | None:
        """Mean of the first entry's states [*F], fixed for good when that entry was appended.

        ``None`` while the archive is empty, and for integer states (images).
        """
        return self._manifest.state_mean

    @property
    def state_std(self) -> Tensor | None:
        """Population standard deviation of the first entry's states [*F]; see ``state_mean``."""
        return self._manifest.state_std

    def append(
        self,
        states: Tensor | TensorDictBase,
        *,
        policy: nn.Module | None = None,
        policy_spec: Mapping[str, Any] | None = None,
        metrics: Mapping[str, Any] | None = None,
        config: Mapping[str, Any] | None = None,
        **columns: Tensor,
    ) -> Entry:
        """Add a finished policy; it becomes part of the archive at one stroke or not at all.

        Args:
            states: the visited states [n, *F], of the shape and dtype of earlier entries; or a
                TensorDict [n] of them as ``"states"`` and further columns.
            policy: the policy, stored as its weights and recipe.
            policy_spec: the recipe, ``{"builder": name, "kwargs": {...}}``, that rebuilds the
                policy; by default the policy's own ``policy_spec`` (see :mod:`sipo_trl.registry`).
            metrics: the policy's evaluation figures, plain JSON.
            config: the configuration that made the policy, plain JSON.
            **columns: further columns [n, ...], such as ``step``, ``episode`` and ``success``.

        Returns:
            The new entry, read back from disk.

        Example:
            >>> import tempfile, torch
            >>> states = torch.tensor([[0.0], [1.0], [0.0], [9.0]])
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     entry = Archive.create(folder).append(
            ...         states, step=torch.tensor([0, 1, 0, 1]), episode=torch.tensor([0, 0, 1, 1])
            ...     )
            ...     entry.final_states.tolist()
            [[1.0], [9.0]]
        """
        data = collect_columns(states, columns)
        spec, weights = describe_policy(policy, policy_spec)
        figures = plain(dict(metrics or {}), "metrics")
        settings = plain(dict(config or {}), "config")
        with report_failure(f"append to {self.path}"), exclusive(self.path):
            self._load()
            self._check_form(data["states"])
            self._remove_leftovers()
            try:
                aside = self.path / _ASIDE
                aside.mkdir()
                document = Document(
                    columns=write_tensors(aside / "states", data, batch_size=[len(data["states"])]),
                    weights=write_tensors(aside / "policy", weights, batch_size=[]),
                    policy_spec=spec,
                    metrics=figures,
                    config=settings,
                )
                write_json(aside / DOCUMENT, document.to_json())
                self._publish(aside, data["states"])
            except BaseException:
                self._remove_leftovers()
                raise
            self._load()
        return self[-1]

    def verify(self) -> None:
        """Read every file of the archive and check its SHA-256.

        Example:
            >>> import tempfile, torch
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     archive = Archive.create(folder)
            ...     _ = archive.append(torch.zeros(3, 2))
            ...     archive.verify()
        """
        Manifest.read(self.path, verify=True)
        for entry in self:
            entry.verify()

    def _load(self) -> None:
        """Read the manifest; entries that are known already keep what they have mapped."""
        manifest = Manifest.read(self.path, verify=self._verify)
        known = {entry.name: entry for entry in self._entries}
        entries = []
        for index, files in enumerate(manifest.entries):
            entry = known.get(entry_name(index))
            if entry is None or entry.files != files:
                entry = Entry(self.path / ENTRIES / entry_name(index), files, verify=self._verify)
            entries.append(entry)
        form = entries[0].document.columns["states"].shape[1:] if entries else None
        for statistic in (manifest.state_mean, manifest.state_std):
            if statistic is not None and statistic.shape != form:
                raise ArchiveError(
                    f"{self.path / MANIFEST}: damaged: its statistics are of {statistic.numel()} "
                    f"features, which is not what the states have. {REMEDY}"
                )
        self._manifest, self._entries = manifest, entries

    def _check_form(self, states: Tensor) -> None:
        if not self._entries:
            return
        first = self[0].document.columns["states"]
        if (states.dtype, states.shape[1:]) != (first.dtype, first.shape[1:]):
            raise ArchiveError(
                f"{self.path}: the archive holds states of {first.dtype} and shape "
                f"{['n', *first.shape[1:]]}, not {states.dtype} and {['n', *states.shape[1:]]}: "
                "bring them into that form, or start another archive."
            )

    def _publish(self, aside: Path, states: Tensor) -> None:
        """Move a complete entry to its place, then list it: only now it exists."""
        mean, std = self.state_mean, self.state_std
        if not self._entries and states.is_floating_point():
            mean, std = mean_and_std(states)
        files = seal(aside)
        entries = self.path / ENTRIES
        entries.mkdir(exist_ok=True)
        aside.rename(entries / entry_name(len(self)))
        sync(entries)
        Manifest((*self._manifest.entries, files), mean, std).write(self.path)

    def _remove_leftovers(self) -> None:
        """Remove what a killed or failed append left: whatever the manifest does not list."""
        listed = len(Manifest.read(self.path, verify=False).entries)
        for leftover in (self.path / _ASIDE, self.path / ENTRIES / entry_name(listed)):
            shutil.rmtree(leftover, ignore_errors=True)


def _refuse_occupied(folder: Path) -> None:
    """Raise if anything is there but what a killed ``create`` may have left."""
    scratch = {".lock", f".{MANIFEST}"}
    if folder.is_file() or (
        folder.is_dir() and any(path.name not in scratch for path in folder.iterdir())
    ):
        raise ArchiveError(
            f"{folder}: there is something already: choose another path, or use Archive.open."
        )
