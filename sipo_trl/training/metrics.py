"""The curves of one iteration, as a table on disk."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

from tensordict import TensorDictBase

from sipo_trl.training.run_folder import explained

Row = dict[str, float]


def to_row(metrics: TensorDictBase) -> Row:
    """Brings an update's metrics to the host, all in one go; vectors become ``name_1``, ...

    Examples:
        >>> import torch
        >>> from tensordict import TensorDict
        >>> to_row(TensorDict({"return": torch.tensor(2.0), "distance": torch.tensor([1.0, 3.0])}))
        {'return': 2.0, 'distance_1': 1.0, 'distance_2': 3.0}
    """
    row: Row = {}
    for name, value in metrics.to("cpu").items():
        if value.ndim == 0:
            row[name] = value.item()
        else:
            row.update({f"{name}_{j}": x for j, x in enumerate(value.tolist(), start=1)})
    return row


class MetricsTable:
    """One row per update in a CSV file, of which a resumed run forgets what came too late.

    Args:
        path: the file; its folder must exist.

    Examples:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     table = MetricsTable(Path(folder) / "metrics.csv")
        ...     for update in range(3):
        ...         table.append({"update": update, "return": update / 2})
        ...     table.cut(2)
        ...     table.read()
        [{'update': 0.0, 'return': 0.0}, {'update': 1.0, 'return': 0.5}]
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, row: Mapping[str, float]) -> None:
        """Adds a row; the first decides the columns."""
        new = not self.path.exists() or not self.path.stat().st_size
        with explained(f"write to {self.path}"), self.path.open("a", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            if new:
                writer.writerow(row)
            writer.writerow(row.values())

    def read(self) -> list[Row]:
        """All complete rows."""
        if not self.path.exists():
            return []
        with self.path.open(newline="") as file:
            header, *lines = list(csv.reader(file)) or [[]]
        return [_parse(header, line) for line in lines if len(line) == len(header)]

    def cut(self, rows: int) -> None:
        """Keeps the first ``rows`` rows."""
        if self.path.exists():
            lines = self.path.read_text().splitlines(keepends=True)
            self.path.write_text("".join(lines[: rows + 1] if rows else []))


def _parse(header: Sequence[str], line: Sequence[str]) -> Row:
    return {name: float(value) for name, value in zip(header, line, strict=True)}
