"""The table that every benchmark ends in, and the command line that prints it."""

import argparse
import importlib
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import torch

NAMES = (
    "components",
    "training",
    "humanoid",
    "humanoid_training",
    "smac",
    "football",
    "evaluation",
)
"""The benchmark files, each of which has ``rows(quick: bool)``."""

HEADER = ("what", "ours", "peer", "peer's", "ours / peer (quartiles)", "target", "verdict")

_PREFIXES = {
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")),
    "B": ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")),
}


@dataclass(frozen=True, kw_only=True)
class Row:
    """What ours takes, what a peer takes, and whether that is good enough.

    Args:
        what: the thing measured, with its sizes.
        ours: seconds of CPU time or bytes.
        peer: what ours is compared with.
        theirs: what the peer takes, in the same unit.
        ratio: ours by theirs, the median over rounds; not quite the ratio of the medians.
        spread: the ratio's quartiles.
        unit: seconds or bytes.
        most_ratio: the target: the greatest ratio that is good enough; ``None`` if any is.
        most: another target: the most that ours may take; ``None`` if there is no limit.

    Example:
        >>> row = Row(what="sum", ours=0.002, peer="a loop", theirs=0.5, ratio=0.004,
        ...           spread=(0.003, 0.005), most_ratio=0.1)
        >>> row.verdict, row.cells()[1:4]
        ('met', ('2.00 ms', 'a loop', '500 ms'))
    """

    what: str
    ours: float
    peer: str
    theirs: float
    ratio: float
    spread: tuple[float, float]
    unit: Literal["s", "B"] = "s"
    most_ratio: float | None = None
    most: float | None = None

    @property
    def verdict(self) -> Literal["met", "MISSED", "-"]:
        """Whether all targets are met; a dash if there are none."""
        judged = [
            figure <= bound
            for figure, bound in ((self.ratio, self.most_ratio), (self.ours, self.most))
            if bound is not None
        ]
        if not judged:
            return "-"
        return "met" if all(judged) else "MISSED"

    def cells(self) -> tuple[str, ...]:
        """The row as text, one cell per column of the table."""
        low, high = self.spread
        spread = f" ({low:.3g} to {high:.3g})" if low < high else ""
        targets = []
        if self.most_ratio is not None:
            targets.append(f"<= {self.most_ratio:.3g}")
        if self.most is not None:
            targets.append(f"<= {_quantity(self.most, self.unit)}")
        return (
            self.what,
            _quantity(self.ours, self.unit),
            self.peer,
            _quantity(self.theirs, self.unit),
            f"{self.ratio:.3g}{spread}",
            " and ".join(targets) or "-",
            self.verdict,
        )

    def as_dict(self) -> dict[str, Any]:
        """All figures and the verdict, as plain data."""
        return {**asdict(self), "verdict": self.verdict}


def format_table(rows: Iterable[Row]) -> str:
    """Lay rows out as a Markdown table.

    Example:
        >>> row = Row(what="sum", ours=0.2, peer="loop", theirs=0.1, ratio=2.0, spread=(1.0, 3.0))
        >>> print(format_table([row]).splitlines()[-1])
        | sum  | 200 ms | loop | 100 ms | 2 (1 to 3)              | -      | -       |
    """
    lines = [HEADER, *(row.cells() for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    lines.insert(1, tuple("-" * width for width in widths))
    return "\n".join(
        f"| {' | '.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))} |"
        for line in lines
    )


def main(arguments: Sequence[str] | None = None, *, only: str | None = None) -> int:
    """Run benchmarks from the command line.

    Args:
        arguments: those of the command line; ``sys.argv`` if not given.
        only: the one benchmark to run; if not given, the command line names them.

    Returns:
        The exit code: 1 if a target is missed or a benchmark could not be run, else 0.
    """
    options = _parse(arguments, only)
    torch.set_num_threads(1)  # Two threads under contention cost several times the CPU.
    rows, complete = [], True
    for name in [only] if only else options.names or NAMES:
        try:
            for row in importlib.import_module(f"benchmarks.{name}").rows(quick=options.quick):
                print(f"{row.verdict:6} {row.what}", file=sys.stderr)
                rows.append(row)
        except ImportError as error:  # an engine or a peer that not everybody has
            print(f"{name} was left out. {error}", file=sys.stderr)
            complete = False
    print(format_table(rows))
    if options.json:
        document = {"torch": torch.__version__, "rows": [row.as_dict() for row in rows]}
        options.json.write_text(json.dumps(document, indent=2) + "\n")
    return int(not complete or any(row.verdict == "MISSED" for row in rows))


def _parse(arguments: Sequence[str] | None, only: str | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks{f'.{only}' if only else ''}",
        description="Measure speed and memory against peers, in CPU time on one thread, and print "
        "a table. The exit code is 1 if a target is missed or a benchmark cannot be run.",
    )
    if not only:
        parser.add_argument(
            "names", nargs="*", metavar="name", help=f"what to run: {', '.join(NAMES)} (all)"
        )
    parser.add_argument("--quick", action="store_true", help="few repetitions: a rough picture")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, too")
    options = parser.parse_args(arguments)
    unknown = [] if only else [name for name in options.names if name not in NAMES]
    if unknown:
        parser.error(f"there is no benchmark {unknown[0]!r}: choose from {', '.join(NAMES)}.")
    return options


def _quantity(value: float, unit: Literal["s", "B"]) -> str:
    prefixes = _PREFIXES[unit]
    size, name = next((pair for pair in prefixes if abs(value) >= pair[0]), prefixes[-1])
    scaled = value / size
    digits = 0 if abs(scaled) >= 100 else 1 if abs(scaled) >= 10 else 2
    return f"{scaled:.{digits}f} {name}"
