"""What a command has found, as text, Markdown, LaTeX, CSV or JSON."""

import csv
import io
import json
import math
import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Cell = str | int | float | bool | None | tuple[int, ...]
Record = Mapping[str, Cell]

_LATEX = {character: f"\\{character}" for character in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}


@dataclass(frozen=True)
class Table:
    """A table for people.

    Attributes:
        header: names of the columns.
        rows: the cells, formatted.
        title: what it shows; empty if that is clear.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""

    @classmethod
    def of(cls, records: Sequence[Record], title: str = "") -> "Table":
        """A row per record, with the columns of the first.

        Examples:
            >>> Table.of([{"policy": "0001", "route": (0, 2), "return": 0.125}]).rows
            [['0001', '0-2', '0.125']]
        """
        header = list(records[0])
        return cls(header, [[show(record[name]) for name in header] for record in records], title)


@dataclass
class Findings:
    """What a command has found about some runs.

    Attributes:
        command: its name.
        records: one per policy or pair, for machines.
        tables: the same for people.
        scores: for each run, the figures by which runs are compared.
        notes: sentences that a reader should not miss.
    """

    command: str
    records: list[Record] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    scores: dict[str, Record] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def summary(self) -> dict[str, dict[str, float | None]]:
        """Mean and standard deviation of each score over all runs.

        Examples:
            >>> Findings("routes", scores={"a": {"routes": 2}, "b": {"routes": 4}}).summary()
            {'routes': {'mean': 3.0, 'std': 1.4142135623730951}}
        """
        names = list(next(iter(self.scores.values()), {}))
        columns = {name: [run[name] for run in self.scores.values()] for name in names}
        return {
            name: _mean_and_std(values)
            for name, values in columns.items()
            if not any(isinstance(value, str) for value in values)
        }

    def all_tables(self) -> list[Table]:
        """The tables, and one with a row per run and a last one for all of them."""
        if not self.scores:
            return self.tables
        names = list(next(iter(self.scores.values())))
        rows = [[run, *(show(found[name]) for name in names)] for run, found in self.scores.items()]
        if len(self.scores) > 1:
            summary = self.summary()
            last = [
                f"{show(summary[n]['mean'])} ({show(summary[n]['std'])})" if n in summary else ""
                for n in names
            ]
            rows.append([f"mean (std) of {len(self.scores)}", *last])
        return [*self.tables, Table(["run", *names], rows)]


def as_text(findings: Findings) -> str:
    """Aligned columns."""
    return _document(findings, _aligned, lambda title: title)


def as_markdown(findings: Findings) -> str:
    """Markdown tables."""

    def lay_out(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
        cells = [[cell.replace("|", "\\|") for cell in row] for row in (header, *rows)]
        cells.insert(1, ["---"] * len(header))
        return "\n".join(f"| {' | '.join(row)} |" for row in cells)

    return _document(findings, lay_out, lambda title: f"**{title}**")


def as_latex(findings: Findings) -> str:
    r"""LaTeX tables, for the package booktabs."""

    def lay_out(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
        lines = [f"{' & '.join(map(_latex, row))} \\\\" for row in (header, *rows)]
        lines.insert(1, r"\midrule")
        columns = "l" + "r" * (len(header) - 1)
        begin = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule"]
        return "\n".join([*begin, *lines, r"\bottomrule", r"\end{tabular}"])

    return _document(findings, lay_out, lambda title: f"% {title}")


def as_csv(findings: Findings) -> str:
    """One row per policy or pair; without any, one per run."""
    records = findings.records or [{"run": run, **found} for run, found in findings.scores.items()]
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(records[0])
    for record in records:
        writer.writerow(["" if cell is None else _plain(cell) for cell in record.values()])
    return stream.getvalue().rstrip("\n")


def as_json(findings: Findings) -> str:
    """Everything."""
    document: dict[str, Any] = {
        "command": findings.command,
        "runs": [{"run": run, **found} for run, found in findings.scores.items()],
        "summary": {"n": len(findings.scores), **findings.summary()},
        "records": findings.records,
        "notes": findings.notes,
    }
    return json.dumps(_finite(document), indent=2)


FORMATS: dict[str, Callable[[Findings], str]] = {
    "text": as_text,
    "markdown": as_markdown,
    "latex": as_latex,
    "csv": as_csv,
    "json": as_json,
}
"""By the names of the options that choose them."""


def show(cell: Cell) -> str:
    """A cell for people.

    Examples:
        >>> [show(cell) for cell in (None, True, 3, 0.123456, (0, 2), ())]
        ['none', 'yes', '3', '0.1235', '0-2', 'nobody']
    """
    match cell:
        case None:
            return "none"
        case bool():
            return "yes" if cell else "no"
        case float():
            return f"{cell:.4g}" if abs(cell) > 1e-9 else "0"  # the rest is rounding
        case tuple():
            return "-".join(map(str, cell)) or "nobody"
    return str(cell)


def _document(
    findings: Findings,
    lay_out: Callable[[Sequence[str], Sequence[Sequence[str]]], str],
    head: Callable[[str], str],
) -> str:
    parts = []
    for table in findings.all_tables():
        title = [head(table.title)] if table.title else []
        parts.append("\n".join([*title, lay_out(table.header, table.rows)]))
    return "\n\n".join(parts)


def _aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def _mean_and_std(values: Sequence[Any]) -> dict[str, float | None]:
    known = [float(value) for value in values if value is not None]
    if not known:
        return {"mean": None, "std": None}
    return {
        "mean": statistics.fmean(known),
        "std": statistics.stdev(known) if len(known) > 1 else 0.0,
    }


def _latex(text: str) -> str:
    return re.sub(r"[\\&%$#_{}~^]", lambda found: _LATEX[found[0]], text)


def _plain(cell: Cell) -> str | int | float | bool | None:
    return show(cell) if isinstance(cell, tuple) else cell


def _finite(value: Any) -> Any:
    """The same without infinities and NaN, which JSON does not have: they become text."""
    match value:
        case float() if not math.isfinite(value):
            return str(value)
        case dict():
            return {key: _finite(item) for key, item in value.items()}
        case list() | tuple():
            return [_finite(item) for item in value]
    return value
