"""``python -m evaluation COMMAND ...``: metrics of saved archives."""

import argparse
import statistics
import sys
from pathlib import Path

from evaluation.gridworld import diversity_table, format_table
from evaluation.landmarks import count_landmarks, plot_archive, policy_landmarks
from sipo_trl.archive import Archive, ArchiveError


def gridworld(arguments: argparse.Namespace) -> None:
    """Prints the paper's table 1, from first principles."""
    print(format_table(diversity_table()))


def landmarks(arguments: argparse.Namespace) -> None:
    """Prints how many landmarks each run's policies reach, and draws their paths."""
    counts = []
    for run in arguments.runs:
        archive = open_archive(run)
        reached = policy_landmarks(archive)
        counts.append(count_landmarks(reached))
        shown = ", ".join("none" if landmark < 0 else str(landmark) for landmark in reached)
        print(f"{run}: {counts[-1]} distinct landmarks ({shown})")
        if arguments.plot is not None:
            arguments.plot.mkdir(parents=True, exist_ok=True)
            name = "_".join(part for part in run.parts[-2:] if part not in ("/", ".", ".."))
            plot_archive(archive).savefig(arguments.plot / f"{name}.png", dpi=120)
    spread = statistics.stdev(counts) if len(counts) > 1 else 0.0
    print(
        f"mean {statistics.mean(counts):.2f} (standard deviation {spread:.2f}, n = {len(counts)})"
    )


def open_archive(path: Path) -> Archive:
    """The archive of a run folder, or the archive itself."""
    inner = path / "archive"
    return Archive.open(inner if inner.is_dir() else path)


def main() -> None:
    """Parses the command line and runs a command."""
    parser = argparse.ArgumentParser(prog="python -m evaluation", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    command = commands.add_parser("gridworld", help="the paper's table of diversity measures")
    command.set_defaults(run=gridworld)
    command = commands.add_parser("landmarks", help="distinct landmarks of navigation runs")
    command.add_argument("runs", nargs="+", type=Path, metavar="RUN_OR_ARCHIVE")
    command.add_argument("--plot", type=Path, metavar="FOLDER", help="also draw the paths there")
    command.set_defaults(run=landmarks)
    arguments = parser.parse_args()
    try:
        arguments.run(arguments)
    except ArchiveError as error:
        sys.exit(f"{error}")


if __name__ == "__main__":
    main()
