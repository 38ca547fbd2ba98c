"""The files of an archive: checked reading, durable writing, one writer at a time."""

import fcntl
import hashlib
import json
import math
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sipo_trl.archive.error import ArchiveError

REMEDY = "Restore the archive from a copy."

# What taking an unexpected document apart may raise.
MALFORMED = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


@dataclass(frozen=True)
class FileRecord:
    """What the manifest knows about a file: its size in bytes and its SHA-256 in hexadecimal."""

    size: int
    sha256: str


def check_size(path: Path, record: FileRecord) -> None:
    """Raise unless there is a file of the recorded size."""
    size = _regular_size(path)
    if size != record.size:
        raise ArchiveError(
            f"{path}: truncated or changed: {size} bytes instead of {record.size}. {REMEDY}"
        )


def check_content(path: Path, record: FileRecord) -> None:
    """Raise unless there is a file with the recorded content."""
    check_size(path, record)
    with _reading(path):
        digest = _sha256(path)
    if digest != record.sha256:
        raise ArchiveError(f"{path}: damaged: its SHA-256 is not the recorded one. {REMEDY}")


def read_json(path: Path) -> Any:
    """Read plain JSON; what is not standard (NaN) or nested beyond reason counts as damage."""
    _regular_size(path)
    with _reading(path):
        return plain(json.loads(path.read_bytes()), "its content")


def write_json(path: Path, document: Any) -> None:
    """Write a new JSON file and have it on disk before returning."""
    with path.open("x") as file:
        json.dump(document, file)
        file.flush()
        os.fsync(file.fileno())


def plain(value: Any, name: str) -> Any:
    """Return a copy of a value as JSON would give it back, or raise, naming what JSON lacks."""
    match value:
        case None | bool() | int() | str():
            return value
        case float() if math.isfinite(value):
            return value
        case list() | tuple():
            return [plain(item, f"{name}[{i}]") for i, item in enumerate(value)]
        case dict() if all(isinstance(key, str) for key in value):
            return {key: plain(item, f"{name}[{key!r}]") for key, item in value.items()}
    raise ArchiveError(
        f"{name} is not plain JSON (a {type(value).__name__}, {value!r:.60}): use finite numbers, "
        "strings, None, lists, and dicts with string keys."
    )


def seal(folder: Path) -> dict[str, FileRecord]:
    """Have a folder with all its content on disk, and return a record per file."""
    records = {}
    for path in sorted(folder.rglob("*")):
        sync(path)
        if path.is_file():
            name = path.relative_to(folder).as_posix()
            records[name] = FileRecord(path.stat().st_size, _sha256(path))
    sync(folder)
    return records


def sync(path: Path) -> None:
    """Have a file, or a folder's list of names, on disk: only then it survives a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """Hold the lock of an archive's writers; it dies with its process, however that ends."""
    descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ArchiveError(
                f"{folder}: somebody else is writing to this archive just now: wait until they "
                "have finished and try again."
            ) from None
        yield
    finally:
        os.close(descriptor)


@contextmanager
def report_failure(action: str) -> Iterator[None]:
    """Turn what the system refuses (full disk, no permission) into an :class:`ArchiveError`."""
    try:
        yield
    # torch reports a file that it cannot size as a RuntimeError.
    except (OSError, RuntimeError) as error:
        raise ArchiveError(
            f"Cannot {action}: {error}. What was there before is unharmed; check the free space "
            "and the permissions."
        ) from error


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, RecursionError, ArchiveError) as error:
        raise ArchiveError(f"{path}: cannot be read ({error}). {REMEDY}") from error


def _regular_size(path: Path) -> int:
    """Refuse links, which may lead out of the archive, and pipes, which block their reader."""
    with _reading(path):
        status = path.lstat()
    if not stat.S_ISREG(status.st_mode):
        raise ArchiveError(f"{path}: not a regular file, which is all an archive holds. {REMEDY}")
    return status.st_size


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
