"""``entry.json``: all about an entry that is not a tensor, and where its tensors are."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sipo_trl.archive._files import MALFORMED, REMEDY, FileRecord, read_json
from sipo_trl.archive._tensors import TensorRecord
from sipo_trl.archive.error import ArchiveError

DOCUMENT = "entry.json"


@dataclass(frozen=True)
class Document:
    """The content of ``entry.json``.

    Args:
        columns: one record per column; all of the same length, ``states`` among them.
        weights: one record per weight of the policy (none without a policy).
        policy_spec: the policy's recipe, or ``None``.
        metrics: the policy's evaluation figures.
        config: the configuration that made it.
    """

    columns: dict[str, TensorRecord]
    weights: dict[str, TensorRecord]
    policy_spec: dict[str, Any] | None
    metrics: dict[str, Any]
    config: dict[str, Any]

    @classmethod
    def read(cls, folder: Path, files: Mapping[str, FileRecord]) -> "Document":
        """Read the document of an entry that consists of ``files``, which bound what it may say."""
        path = folder / DOCUMENT
        document = read_json(path)
        try:
            parsed = cls(
                columns=_records(document["columns"]),
                weights=_records(document["weights"]),
                policy_spec=document["policy_spec"],
                metrics=dict(document["metrics"]),
                config=dict(document["config"]),
            )
            parsed._check(files)
        except MALFORMED as error:
            raise ArchiveError(f"{path}: damaged: {error!r}. {REMEDY}") from error
        return parsed

    def to_json(self) -> dict[str, Any]:
        """Return the document as plain JSON."""
        return {
            "columns": {name: record.to_json() for name, record in self.columns.items()},
            "weights": {name: record.to_json() for name, record in self.weights.items()},
            "policy_spec": self.policy_spec,
            "metrics": self.metrics,
            "config": self.config,
        }

    def _check(self, files: Mapping[str, FileRecord]) -> None:
        length = self.columns["states"].shape[0]
        for name, record in self.columns.items():
            if record.shape[0] != length:
                raise ValueError(f"column {name!r} has {record.shape[0]} rows, not {length}")
        for name, record in (*self.columns.items(), *self.weights.items()):
            size = 0 if record.file is None else files[record.file].size
            if size != record.nbytes:
                raise ValueError(f"{name!r} takes {record.nbytes} bytes, its file has {size}")


def _records(document: Any) -> dict[str, TensorRecord]:
    return {name: TensorRecord.from_json(record) for name, record in document.items()}
