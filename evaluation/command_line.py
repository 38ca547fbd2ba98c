"""``python -m evaluation COMMAND RUN_OR_ARCHIVE...``: options, input and output of commands."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from evaluation.clips import film_policies
from evaluation.commands import COMMANDS
from evaluation.population import InputError, Population, join_populations, load_population
from evaluation.progress import show_progress
from evaluation.report import write_report
from evaluation.rollout import replay, try_replay
from evaluation.strip import draw_strip
from evaluation.tables import FORMATS
from sipo_trl.archive import ArchiveError

# Enough for intervals of a few hundredths, and quick.
_HELD_OUT_EPISODES = 32

_EPILOG = """\
examples:
  python -m evaluation landmarks runs/navigation/*
  python -m evaluation entropy RUN --episodes 64 --exploration sample --json
  python -m evaluation entropy --together SEED_0 SEED_1 SEED_2 SEED_3
  python -m evaluation certificate RUN_A RUN_B --markdown
  python -m evaluation report RUN
  python -m evaluation strip RUN --output strip.png

RUN is a run folder or an archive; nothing is ever written into an archive. Several runs give
the mean and the standard deviation over all of them, or are one population with --together. A
wrong input ends with one sentence and the exit code 2.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        arguments: those of the command line; ``sys.argv`` if not given.

    Returns:
        The exit code: 2 if the input is no good, else 0.
    """
    options = _parser().parse_args(arguments)
    try:
        if options.command == "report":
            return _report(options)
        if options.command == "strip":
            return _strip(options)
        _refuse_archive(options, options.output)
        _refuse_archive(options, getattr(options, "plot", None))
        findings = COMMANDS[options.command](_populations(options), options)
        text = FORMATS[options.format](findings)
        if options.output is None:
            print(text)
        else:
            options.output.parent.mkdir(parents=True, exist_ok=True)
            options.output.write_text(f"{text}\n")
        for note in findings.notes if options.format != "json" else ():
            print(note, file=sys.stderr)
    except (ArchiveError, InputError) as error:
        print(error, file=sys.stderr)
        return 2
    except OSError as error:
        print(f"{error.filename}: {error.strerror or error}.", file=sys.stderr)
        return 2
    return 0


def _report(options: argparse.Namespace) -> int:
    runs = options.runs
    if options.output is not None and len(runs) > 1:
        raise InputError("--output names one page, but there are several runs: leave it out.")
    for run in runs:
        output = options.output or _default_page(run)
        _refuse_archive(options, output)
        population = _population(run, options)
        if options.clips is None and population.run is not None:
            why_not = _film(population, population.run / "clips")
            if why_not is not None:
                print(why_not, file=sys.stderr)
        path = write_report(
            population, output, clips=options.clips, least=options.least, seed=options.seed
        )
        print(f"{run}: {path}")
    return 0


def _strip(options: argparse.Namespace) -> int:
    """All policies of all runs, a row each, in one picture."""
    _refuse_archive(options, options.output)
    films, names = [], []
    for run in options.runs:
        population = load_population(run)
        if population.run is None:
            raise InputError(f"{run}: only a run folder has a place for films: give one.")
        # Other episodes than the gallery's have a folder of their own.
        folder = population.run / "clips" / (f"seed_{options.seed}" if options.seed else "")
        why_not = _film(population, folder, seed=options.seed)
        made = [folder / f"{policy.name}.webp" for policy in population]
        if why_not or not all(film.exists() for film in made):
            raise InputError(f"{run}: {why_not or 'its policies have nothing to film.'}")
        films += made
        of_run = f"{run.absolute().name}/" if len(options.runs) > 1 else ""
        names += [f"{of_run}{policy.name}" for policy in population]
    strip = draw_strip(
        films,
        names=names,
        moments=options.moments,
        seconds=options.seconds,
        start=options.start,
    )
    options.output.parent.mkdir(parents=True, exist_ok=True)
    strip.quantize(256).save(options.output)
    print(options.output)
    return 0


def _film(population: Population, folder: Path, *, seed: int = 0) -> str | None:
    """Film who is not filmed yet; says why there is nothing to see."""
    with show_progress(f"films of {population.name}") as progress:
        return film_policies(population, folder, seed=seed, progress=progress)


def _default_page(run: Path) -> Path:
    """In the run folder; beside, not in, an archive that has none."""
    if (run / "archive").is_dir():
        return run / "report" / "index.html"
    return Path(f"{run.absolute().name}.html")


def _populations(options: argparse.Namespace) -> Iterator[Population]:
    populations = (_population(run, options) for run in getattr(options, "runs", ()))
    if getattr(options, "together", False):
        yield join_populations(list(populations))
    else:
        yield from populations


def _population(run: Path, options: argparse.Namespace) -> Population:
    """The policies of a run, with new episodes if they are asked for."""
    population = load_population(run)
    number = options.episodes
    if number == 0 or (number is None and not options.held_out):
        return population
    with show_progress(f"episodes of {run}") as progress:
        choices = {"exploration": options.exploration, "seed": options.seed, "progress": progress}
        if number is not None:
            return replay(population, episodes=number, **choices)
        population, why = try_replay(population, episodes=_HELD_OUT_EPISODES, **choices)
    if why:
        print(why, file=sys.stderr)
    return population


def _refuse_archive(options: argparse.Namespace, output: Path | None) -> None:
    """Nothing is ever written into an archive."""
    if output is None:
        return
    for parent in (output.absolute(), *output.absolute().parents):
        if (parent / "manifest.json").exists():
            raise InputError(f"{output}: this is within an archive: write somewhere else.")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m evaluation",
        description="Metrics, tables and a gallery page, made from saved archives.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="command")
    for name, command in COMMANDS.items():
        help_text = (command.__doc__ or "").rstrip(".")
        sub = commands.add_parser(name, help=help_text, description=command.__doc__)
        if name != "gridworld":
            _add_runs(sub, held_out=name == "certificate")
            sub.add_argument(
                "--together",
                action="store_true",
                help="all runs are one population, such as seeds that know nothing of each other",
            )
        _add_formats(sub)
        _add_own(sub, name)
    sub = commands.add_parser(
        "report",
        help="One page that shows everything, offline",
        description="Write one self-contained HTML page about a run: RUN/report/index.html, or "
        "NAME.html in the current folder for an archive that is not in a run folder.",
    )
    _add_runs(sub, held_out=True)
    sub.add_argument("--output", type=Path, metavar="FILE", help="the page to write")
    _add_least(sub)
    sub.add_argument(
        "--clips",
        type=Path,
        metavar="FOLDER",
        help="rendered clips to show, named after the archive's entries: 0001.mp4, .webm, .webp or "
        ".gif (default: clips/ in the run folder, where humanoids and matches are filmed)",
    )
    _add_strip(commands)
    return parser


def _add_strip(commands: Any) -> None:
    sub = commands.add_parser(
        "strip",
        help="Moments of all policies in one picture, a row for each",
        description="Film all policies that can be drawn, humanoids and matches, and put moments "
        "of their films side by side. Films are kept in RUN/clips, as those of the gallery.",
    )
    sub.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="run folders")
    sub.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        default=Path("strip.png"),
        help="the picture to write (default: %(default)s)",
    )
    for name, kind, default, help_text in (
        ("--moments", int, 10, "how many there are in a row"),
        ("--seconds", float, 0.6, "time from the first to the last of them"),
        ("--start", float, 2.0, "when the first one is; earlier in films that end too soon"),
        ("--seed", int, 0, "decides how the episodes that are filmed start"),
    ):
        sub.add_argument(name, type=kind, default=default, help=f"{help_text} (default: {default})")


def _add_runs(parser: argparse.ArgumentParser, *, held_out: bool) -> None:
    parser.add_argument(
        "runs", nargs="+", type=Path, metavar="RUN_OR_ARCHIVE", help="run folders or archives"
    )
    parser.add_argument(
        "--episodes",
        type=int,
        metavar="N",
        help="play N new episodes with each policy, in its environment, with seeds that training "
        "never used"
        + (
            f" (default: {_HELD_OUT_EPISODES} where the environment is installed, else the stored "
            "episodes; 0: the stored ones)"
            if held_out
            else " (default: the stored episodes)"
        ),
    )
    parser.add_argument(
        "--exploration",
        choices=("mean", "sample"),
        default="sample" if held_out else "mean",
        help="new episodes take the most likely actions, or draw them (default: %(default)s)",
    )
    parser.add_argument("--seed", type=int, default=0, help="decides all draws (default: 0)")
    parser.set_defaults(held_out=held_out)


def _add_formats(parser: argparse.ArgumentParser) -> None:
    formats = parser.add_mutually_exclusive_group()
    for name in FORMATS:
        if name != "text":
            formats.add_argument(
                f"--{name}",
                action="store_const",
                const=name,
                dest="format",
                help=f"print {name.upper() if name in ('csv', 'json') else name}",
            )
    parser.add_argument("--output", type=Path, metavar="FILE", help="write there instead")
    parser.set_defaults(format="text")


def _add_own(parser: argparse.ArgumentParser, name: str) -> None:
    """The options that only some commands have."""
    match name:
        case "entropy":
            parser.add_argument("--k", type=int, default=12, help="which neighbour (default: 12)")
            parser.add_argument(
                "--include-self",
                action="store_true",
                help="a state is its own first neighbour, as in the published scripts",
            )
        case "torque":
            parser.add_argument(
                "--published",
                action="store_true",
                help="foot sensors instead of torques and self-pairs averaged in, as published",
            )
        case "routes":
            parser.add_argument(
                "--threshold",
                type=float,
                default=0.03,
                help="who is farther from the ball does not have it (default: 0.03)",
            )
        case "heatmap":
            parser.add_argument("--bins", type=int, default=32, help="cells per side (default: 32)")
        case "certificate":
            _add_least(parser)
    if name in ("heatmap", "landmarks"):
        parser.add_argument("--plot", type=Path, metavar="FOLDER", help="also draw pictures there")


def _add_least(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--least",
        type=float,
        default=0.1,
        help="the distance, from 0 to 1, that distinct policies must surpass, times the number of "
        "directions in which their states vary (default: 0.1)",
    )
