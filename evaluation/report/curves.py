"""The curves of a run: one table of metrics per iteration."""

import csv
import math
from pathlib import Path
from typing import Any

# More points than a chart has pixels are no use.
_POINTS = 400

Curve = dict[str, list[float | None]]


def read_curves(run: Path, number: int) -> list[Curve | None]:
    """The metrics of each policy's iteration, by name; ``None`` where there are none.

    Args:
        run: the run folder.
        number: of policies.
    """
    return [_read(run / "iterations" / f"{i + 1:04d}" / "metrics.csv") for i in range(number)]


def threshold(config: dict[str, Any]) -> float | None:
    """The bound of the distances that a policy had to keep, from its settings."""
    measure = config.get("measure")
    if not isinstance(measure, dict) or not isinstance(measure.get("delta"), int | float):
        return None
    similarity = measure.get("name") == "rbf" or measure.get("radius") is not None
    return -measure["delta"] if similarity else measure["delta"]


def _read(path: Path) -> Curve | None:
    if not path.is_file():
        return None
    with path.open(newline="", errors="replace") as file:
        header, *lines = list(csv.reader(file)) or [[]]
    # A run that is under way may be in the middle of a line.
    rows = [line for line in lines if len(line) == len(header)]
    kept = rows[:: max(1, -(-len(rows) // _POINTS))]
    if not kept:
        return None
    columns = zip(*kept, strict=True)
    return {
        name: [_number(cell) for cell in cells] for name, cells in zip(header, columns, strict=True)
    }


def _number(cell: str) -> float | None:
    try:
        value = float(cell)
    except ValueError:
        return None
    return float(f"{value:.5g}") if math.isfinite(value) else None
