"""The manifest: which entries an archive has, and what each of their files must look like."""

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from sipo_trl.archive._document import DOCUMENT
from sipo_trl.archive._files import (
    MALFORMED,
    REMEDY,
    FileRecord,
    check_size,
    read_json,
    sync,
    write_json,
)
from sipo_trl.archive.error import ArchiveError

MANIFEST = "manifest.json"
ENTRIES = "entries"
FORMAT = "sipo_trl.archive"
VERSION = 1
_CREATE = "make a new archive there with Archive.create."


def entry_name(index: int) -> str:
    """Return the folder name of the entry at an index: ``0001`` is the first."""
    return f"{index + 1:04d}"


@dataclass(frozen=True)
class Manifest:
    """The content of ``manifest.json``.

    Args:
        entries: for each entry, its files (path within the entry) and their records.
        state_mean: mean of the first entry's states [*F], or ``None``.
        state_std: their standard deviation [*F], or ``None``.
    """

    entries: tuple[dict[str, FileRecord], ...] = ()
    state_mean: Tensor | None = None
    state_std: Tensor | None = None

    @classmethod
    def read(cls, folder: Path, *, verify: bool) -> "Manifest":
        """Read a manifest and check, without reading them, that all files are in place."""
        path = folder / MANIFEST
        if not folder.is_dir():
            raise ArchiveError(f"{folder}: there is no such folder: check the path, or {_CREATE}")
        if not os.path.lexists(path):
            raise ArchiveError(
                f"{folder}: not an archive, it has no {MANIFEST}: check the path, or {_CREATE}"
            )
        document = read_json(path)
        _check_format(path, document)
        if verify and document.get("sha256") != _checksum(document):
            raise ArchiveError(f"{path}: damaged: its own SHA-256 does not match. {REMEDY}")
        try:
            manifest = cls._from_json(document)
        except MALFORMED as error:
            raise ArchiveError(f"{path}: damaged: {error!r}. {REMEDY}") from error
        # Also of an empty archive: the next append writes there.
        _refuse_link(folder / ENTRIES)
        for index, files in enumerate(manifest.entries):
            _check_files(folder / ENTRIES / entry_name(index), files)
        return manifest

    @classmethod
    def _from_json(cls, document: Any) -> "Manifest":
        entries = []
        for index, entry in enumerate(document["entries"]):
            # Names are ours to give, so that none can lead out of the archive.
            if entry["name"] != entry_name(index):
                raise ValueError(f"entry {index} is named {entry['name']!r}")
            files = {name: FileRecord(**file) for name, file in entry["files"].items()}
            if DOCUMENT not in files:
                raise ValueError(f"entry {index} has no {DOCUMENT}")
            entries.append(files)
        mean, std = _statistic(document["state_mean"]), _statistic(document["state_std"])
        return cls(tuple(entries), mean, std)

    def write(self, folder: Path) -> None:
        """Replace the manifest at one stroke: a reader sees the old one or the new one."""
        document: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "state_mean": None if self.state_mean is None else self.state_mean.tolist(),
            "state_std": None if self.state_std is None else self.state_std.tolist(),
            "entries": [
                {
                    "name": entry_name(index),
                    "files": {name: asdict(record) for name, record in files.items()},
                }
                for index, files in enumerate(self.entries)
            ],
        }
        document["sha256"] = _checksum(document)
        aside = folder / f".{MANIFEST}"
        aside.unlink(missing_ok=True)
        try:
            write_json(aside, document)
            aside.replace(folder / MANIFEST)
        finally:
            aside.unlink(missing_ok=True)
        sync(folder)


def _check_format(path: Path, document: Any) -> None:
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ArchiveError(f"{path}: not the manifest of a sipo_trl archive: check the path.")
    version = document.get("version")
    if not isinstance(version, int):
        raise ArchiveError(f"{path}: damaged: its format version is {version!r}. {REMEDY}")
    if version > VERSION:
        raise ArchiveError(
            f"{path}: written in format version {version}, and this sipo_trl reads up to "
            f"{VERSION}: update sipo_trl."
        )


def _statistic(values: Any) -> Tensor | None:
    if values is None:
        return None
    statistic = torch.tensor(values, dtype=torch.float64).float()
    if not statistic.isfinite().all():
        raise ValueError(f"{values} are not finite float32 numbers")
    return statistic


def _checksum(document: dict[str, Any]) -> str:
    """Return the SHA-256 of all but the checksum itself."""
    content = {key: value for key, value in document.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _check_files(folder: Path, files: dict[str, FileRecord]) -> None:
    """Check that an entry's files exist, have their sizes and lie within the entry."""
    parents: set[str] = set()
    for name in files:
        *above, file = name.split("/")
        if len(above) > 1 or not {*above, file}.isdisjoint({"", ".", ".."}):
            raise ArchiveError(f"{folder}: {name!r} is no file name that an entry has. {REMEDY}")
        parents.update(above)
    for parent in (folder, *(folder / name for name in parents)):
        _refuse_link(parent)
    for name, record in files.items():
        check_size(folder / name, record)


def _refuse_link(folder: Path) -> None:
    if folder.is_symlink():
        raise ArchiveError(f"{folder}: a link, which may lead out of the archive. {REMEDY}")
