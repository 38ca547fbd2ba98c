"""The commands that compute metrics: from populations and options to findings."""

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from evaluation.certificate import certify
from evaluation.distances import distance_matrices
from evaluation.entropy import knn_entropy
from evaluation.gridworld import Table as GridTable
from evaluation.gridworld import diversity_table, occupancy_table
from evaluation.heatmap import plot_heatmaps, position_heatmaps
from evaluation.landmarks import count_landmarks, plot_population, policy_landmarks
from evaluation.population import InputError, Policy, Population
from evaluation.progress import show_progress
from evaluation.routes import ball_route, count_routes, policy_route
from evaluation.rows import entropy_rows, positions
from evaluation.tables import Findings, Record, Table, show
from evaluation.torque import torque_distance

Command = Callable[[Iterable[Population], argparse.Namespace], Findings]


def returns(populations: Iterable[Population], options: argparse.Namespace) -> Findings:
    """How well each policy does: returns, wins, and how long its episodes last."""
    findings = Findings("returns")
    for population in populations:
        means = []
        for policy in population:
            found = policy.returns
            last = torch.stack([rows[-1] for rows in policy.episodes])
            steps = policy.column("step").flatten()[last].double() + 1
            means.append(found.mean().item())
            findings.records.append(
                _about(
                    population,
                    policy,
                    **{"episodes": len(found), "return": means[-1]},
                    median=found.quantile(0.5).item(),
                    least=found.min().item(),
                    success=policy.success_rate,
                    steps=steps.mean().item(),
                )
            )
        findings.scores[population.name] = {"mean return": float(np.mean(means))}
    findings.tables.append(Table.of(findings.records))
    return findings


def entropy(populations: Iterable[Population], options: argparse.Namespace) -> Findings:
    """How much of the state space a population covers: k-nearest-neighbour state entropy."""
    findings = Findings("entropy")
    for population in populations:
        pooled = [entropy_rows(policy) for policy in population]
        _note_wins(findings, population)
        for policy, rows in zip(population, pooled, strict=True):
            won = len(policy.won_episodes)
            findings.records.append(_about(population, policy, won_episodes=won, rows=len(rows)))
        states = torch.cat(pooled)
        with _explained(population), show_progress(f"entropy of {population.name}") as progress:
            value = knn_entropy(states, options.k, options.include_self, progress=progress)
        findings.scores[population.name] = {"entropy": value, "states": len(states)}
    findings.tables.append(Table.of(findings.records))
    return findings


def torque(populations: Iterable[Population], options: argparse.Namespace) -> Findings:
    """How differently humanoids use their joints."""
    findings = Findings("torque")
    column = "foot_sensors" if options.published else "torque"
    for population in populations:
        torques = [policy.column(column) for policy in population]
        for policy, some in zip(population, torques, strict=True):
            norm = some.double().mean(0).norm().item()
            findings.records.append(_about(population, policy, norm_of_mean=norm))
        with _explained(population):
            value = torque_distance(torques, options.published)
        findings.scores[population.name] = {"torque distance": value}
    findings.tables.append(Table.of(findings.records))
    return findings


def routes(populations: Iterable[Population], options: argparse.Namespace) -> Findings:
    """Which way the ball takes through the team, per won episode; distinct routes."""
    findings = Findings("routes")
    for population in populations:
        _note_wins(findings, population)
        chosen = []
        for policy in population:
            ball, players = policy.column("ball"), policy.column("position")
            episodes = _whole_episodes(policy)
            taken = [ball_route(ball[rows], players[rows], options.threshold) for rows in episodes]
            chosen.append(policy_route(taken))
            findings.records.append(
                _about(population, policy, won_episodes=len(taken), route=chosen[-1])
            )
        findings.scores[population.name] = {"distinct routes": count_routes(chosen)}
    findings.tables.append(Table.of(findings.records))
    return findings


def heatmap(populations: Iterable[Population], options: argparse.Namespace) -> Findings:
    """Where policies spend their time, and how much of it in the same places."""
    findings = Findings("heatmap")
    for population in populations:
        places = [positions(policy) for policy in population]
        maps = position_heatmaps(places, bins=options.bins)
        for policy, own in zip(population, maps, strict=True):
            others = [own.overlap(other) for other in maps if other is not own]
            visited = int((own.shares > 0).sum())
            overlap = float(np.mean(others)) if others else None
            findings.records.append(
                _about(population, policy, visited_cells=visited, overlap_with_others=overlap)
            )
        overlaps = [a.overlap(b) for a, b in combinations(maps, 2)]
        mean = float(np.mean(overlaps)) if overlaps else None
        findings.scores[population.name] = {"mean overlap": mean}
        if options.plot is not None:
            titles = [f"policy {policy.name}" for policy in population]
            _save(findings, population, options.plot, plot_heatmaps(maps, titles))
    findings.tables.append(Table.of(findings.records))
    return findings


def landmarks(populations: Iterable[Population], options: argparse.Namespace) -> Findings:
    """Which landmarks navigation policies reach; distinct landmarks."""
    findings = Findings("landmarks")
    for population in populations:
        reached = policy_landmarks(population)
        for policy, landmark in zip(population, reached, strict=True):
            own = landmark if landmark >= 0 else None
            findings.records.append(
                _about(population, policy, landmark=own, success=policy.success_rate)
            )
        findings.scores[population.name] = {"distinct landmarks": count_landmarks(reached)}
        if options.plot is not None:
            _save(findings, population, options.plot, plot_population(population))
    findings.tables.append(Table.of(findings.records))
    return findings


def distances(populations: Iterable[Population], options: argparse.Namespace) -> Findings:
    """The distance between every two policies, under every state-distance measure."""
    findings = Findings("distances")
    for population in populations:
        finals = [policy.final_states for policy in population]
        known = [final for final in finals if final is not None]
        states = [policy.states for policy in population]
        with show_progress(f"critics for {population.name}") as progress:
            matrices = distance_matrices(
                states,
                known if len(known) == len(finals) else None,
                variance=population.kernel_variance,
                seed=options.seed,
                progress=progress,
            )
        names = [policy.name for policy in population]
        apart = ~np.eye(len(names), dtype=bool)
        for measure, matrix in matrices.items():
            cells = [[show(value) for value in row] for row in matrix.tolist()]
            rows = [[name, *row] for name, row in zip(names, cells, strict=True)]
            title = f"{measure}, {population.name}"
            findings.tables.append(Table([measure, *names], rows, title))
            findings.records += [
                {
                    "run": population.name,
                    "measure": measure,
                    "policy": names[i],
                    "other": names[j],
                    "distance": float(matrix[i, j]),
                }
                for i, j in np.ndindex(matrix.shape)
            ]
        findings.scores[population.name] = {
            f"mean {name}": float(matrix[apart].mean()) if apart.any() else None
            for name, matrix in matrices.items()
        }
    return findings


def certificate(populations: Iterable[Population], options: argparse.Namespace) -> Findings:
    """Which policies are really different, with confidence, and how many strategies there are."""
    findings = Findings("certificate")
    for population in populations:
        findings.notes.append(f"{population.name}: judged on {population.origin}.")
        episodes = [[policy.states[rows] for rows in policy.episodes] for policy in population]
        with _explained(population), show_progress(f"distances of {population.name}") as progress:
            found = certify(episodes, least=options.least, seed=options.seed, progress=progress)
        names = [policy.name for policy in population]
        findings.records += [
            {
                "run": population.name,
                "policy": names[pair.first],
                "other": names[pair.second],
                "distance": pair.distance,
                "low": pair.low,
                "high": pair.high,
                "limit": pair.limit,
                "verdict": pair.verdict,
            }
            for pair in found.pairs
        ]
        findings.scores[population.name] = {
            "distinct strategies": len(found.strategies),
            "policies": len(population),
        }
    if findings.records:
        findings.tables.append(Table.of(findings.records))
    return findings


def gridworld(populations: Iterable[Population], options: argparse.Namespace) -> Findings:
    """The paper's table of diversity measures, from first principles."""
    findings = Findings("gridworld")
    tables: Sequence[GridTable] = (diversity_table(), occupancy_table())
    for table in tables:
        rows: list[Record] = [
            {"pair": ", ".join(pair), **figures} for pair, figures in table.items()
        ]
        findings.tables.append(Table.of(rows))
        findings.records += [
            {"pair": row["pair"], "measure": name, "value": value}
            for row in rows
            for name, value in row.items()
            if name != "pair"
        ]
    return findings


def _about(population: Population, policy: Policy, **found: object) -> Record:
    """A record about a policy."""
    return {"run": population.name, "policy": policy.name, **found}  # type: ignore[dict-item]


def _note_wins(findings: Findings, population: Population) -> None:
    """Say which policies have nothing to show, and where nobody can know."""
    if any(policy.won is None for policy in population):
        findings.notes.append(
            f"{population.name}: there is no column 'success', so every episode counts as won."
        )
        return
    for policy in population:
        if not policy.won_episodes:
            findings.notes.append(
                f"{population.name}: policy {policy.name} won none of its "
                f"{len(policy.episodes)} episodes and adds nothing."
            )


def _whole_episodes(policy: Policy) -> list[Tensor]:
    """The rows of won episodes, of which every step was kept."""
    step = policy.column("step").flatten()
    for rows in policy.won_episodes:
        if not torch.equal(step[rows], torch.arange(len(rows))):
            raise InputError(
                f"{policy.path}: some steps of its episodes were not stored, and a route needs "
                "all: roll the policies out again with --episodes, or store more states."
            )
    return policy.won_episodes


@contextmanager
def _explained(population: Population) -> Iterator[None]:
    """Let what a metric finds wrong with its input name the run."""
    try:
        yield
    except ValueError as error:
        raise InputError(f"{population.name}: {error}") from error


def _save(findings: Findings, population: Population, folder: Path, figure: Figure) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    parts = Path(population.name).absolute().parts[-2:]
    path = folder / f"{'_'.join(part.strip('/') for part in parts)}.png"
    figure.savefig(path, dpi=120)
    findings.notes.append(f"{population.name}: drawn in {path}.")


COMMANDS: dict[str, Command] = {
    command.__name__: command
    for command in (
        returns,
        entropy,
        torque,
        routes,
        heatmap,
        gridworld,
        landmarks,
        distances,
        certificate,
    )
}
"""By name."""
