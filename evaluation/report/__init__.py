"""The gallery."""

from pathlib import Path
from evaluation.population import Population


def write_report(
    population: Population,
    output: Path,
    *,
    clips: Path | None = None,
    least: float = 0.1,
    seed: int = 0,
) -> Path:
    """Write."""
    return output
