"""Everything that the page shows, as plain data."""

import base64
from pathlib import Path
from typing import Any

from evaluation.certificate import Certificate, certify
from evaluation.distances import distance_matrices
from evaluation.landmarks import count_landmarks, policy_landmarks
from evaluation.population import InputError, Policy, Population
from evaluation.progress import show_progress
from evaluation.report.curves import read_curves, threshold
from evaluation.report.features import feature_content
from evaluation.report.plane import find_plane, plane_content

_CLIPS = {
    ".mp4": "video/mp4",
    ".webm": "video/webm",
    ".webp": "image/webp",
    ".gif": "image/gif",
}

_MEASURES = {
    "energy": "Energy coefficient on the episodes shown here, from 0 (the same) to 1",
    "rbf": "Minus the mean kernel value: 0 is farthest",
    "wd": "Learned critics' difference of scores (Wasserstein)",
    "final_state": "Mean distance between the ends of episodes",
}


def page_content(
    population: Population, *, clips: Path | None = None, least: float = 0.1, seed: int = 0
) -> dict[str, Any]:
    """Collect what the page shows.

    Args:
        population: the policies.
        clips: folder of rendered clips, named after the entries.
        least: see :func:`~evaluation.certificate.certify`.
        seed: decides all draws.
    """
    run = population.run
    number = len(population)
    folder = clips or (run / "clips" if run is not None else None)
    certificate = _certificate(population, least, seed)
    curves = read_curves(run, number) if run is not None else [None] * number
    first = population.policies[0].config
    return {
        "run": Path(population.name).absolute().name if run is None else "/".join(run.parts[-2:]),
        "env": population.env,
        "origin": population.origin,
        "settings": first,
        "threshold": threshold(first),
        "score": _score(population),
        "policies": [
            {
                **_figures(policy),
                "curve": curve,
                "clip": _clip(folder, policy.name) if folder is not None else None,
            }
            for policy, curve in zip(population, curves, strict=True)
        ],
        "certificate": _verdicts(certificate),
        "matrices": _matrices(population, certificate, seed),
        "plane": plane_content(population, find_plane(population)),
        "features": feature_content(population),
    }


def _figures(policy: Policy) -> dict[str, Any]:
    return {
        "name": policy.name,
        "return": policy.mean_return,
        "success": policy.success_rate,
        "episodes": len(policy.episodes),
        "won": len(policy.won_episodes) if policy.won is not None else None,
        "states": len(policy.states),
    }


def _score(population: Population) -> dict[str, Any] | None:
    """The environment's own count of what was found, if it has one."""
    if not all(policy.has("landmark") for policy in population):
        return None
    reached = policy_landmarks(population)
    return {"name": "landmarks reached", "value": count_landmarks(reached)}


def _certificate(population: Population, least: float, seed: int) -> Certificate | None:
    """The verdicts, if there are episodes to judge by."""
    if any(len(policy.episodes) < 2 for policy in population):
        return None
    episodes = [[policy.states[rows] for rows in policy.episodes] for policy in population]
    with show_progress("certificate") as progress:
        return certify(episodes, least=least, seed=seed, progress=progress)


def _verdicts(certificate: Certificate | None) -> dict[str, Any] | None:
    if certificate is None:
        return None
    return {
        "strategies": certificate.strategies,
        "pairs": [{**vars(pair), "verdict": pair.verdict} for pair in certificate.pairs],
    }


def _matrices(
    population: Population, certificate: Certificate | None, seed: int
) -> list[dict[str, Any]]:
    """Every distance matrix, with what it means; that of the certificate first."""
    number = len(population)
    found: dict[str, list[list[float]]] = {}
    if certificate is not None:
        energy = [[0.0] * number for _ in range(number)]
        for pair in certificate.pairs:
            energy[pair.first][pair.second] = energy[pair.second][pair.first] = pair.distance
        found["energy"] = energy
    finals = [policy.final_states for policy in population]
    known = [final for final in finals if final is not None]
    with show_progress("distance matrices") as progress:
        matrices = distance_matrices(
            [policy.states for policy in population],
            known if len(known) == number else None,
            variance=population.kernel_variance,
            seed=seed,
            progress=progress,
        )
    found |= {name: matrix.tolist() for name, matrix in matrices.items()}
    return [
        {
            "name": name,
            "about": _MEASURES[name],
            "values": [[float(f"{v:.4g}") for v in row] for row in rows],
        }
        for name, rows in found.items()
    ]


def _clip(folder: Path, name: str) -> str | None:
    """A rendered clip of a policy, as a data URI: whoever renders one puts it in this folder."""
    for suffix, kind in _CLIPS.items():
        path = folder / f"{name}{suffix}"
        if path.is_file():
            return f"data:{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"
    if not folder.is_dir() and folder.exists():
        raise InputError(f"{folder}: this is no folder of clips.")
    return None
