"""Episodes as paths on a plane, for the page's player and heat maps."""

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from evaluation.heatmap import position_heatmaps
from evaluation.landmarks import layout
from evaluation.population import InputError, Policy, Population
from evaluation.routes import ball_route, policy_route
from evaluation.rows import current_states
from sipo_trl.envs.navigation import LANDMARK_RADIUS, ORIGIN_DISTANCE, TOUCH_DISTANCE
from sipo_trl.envs.smac import load_map, map_names

Kind = Literal["navigation", "football", "map", "projection"]

# What keeps a page with ten policies small and its player smooth.
_EPISODES, _STEPS, _POINTS = 12, 150, 40_000
_BINS = 32
_PITCH = ((-1.0, 1.0), (-0.42, 0.42))
# Football's units are longer across the pitch than along it.
_PITCH_ASPECT = 83.6 / 54.4
_MATCHES = 3  # with more of them nobody could follow the ball


@dataclass(frozen=True)
class Plane:
    """Where policies are seen.

    Attributes:
        kind: what is drawn around the paths.
        places: positions at each row [n, A, 2], of each policy.
        axes: names of both axes; empty for places in space.
    """

    kind: Kind
    places: list[Tensor]
    axes: tuple[str, str] = ("", "")


def find_plane(population: Population) -> Plane:
    """Positions if there are any; else the two directions in which states vary the most."""
    if all(policy.has("position") for policy in population):
        places = [policy.column("position").double() for policy in population]
        places = [some.unsqueeze(1) if some.ndim == 2 else some for some in places]
        return Plane("football" if population.policies[0].has("ball") else "map", places)
    states = [current_states(policy).double() for policy in population]
    if population.env == "navigation" and states[0].shape[1] == 2:
        return Plane("navigation", [some.unsqueeze(1) for some in states])
    if states[0].shape[1] == 2:
        return Plane("map", [some.unsqueeze(1) for some in states])
    return Plane("projection", _project(states), ("1st direction", "2nd direction"))


def plane_content(population: Population, plane: Plane) -> dict[str, Any]:
    """What the page needs to draw paths and heat maps."""
    agents = plane.places[0].shape[1]
    number = max(1, min(_EPISODES, _POINTS // (len(population) * _STEPS * agents)))
    if population.policies[0].has("enemy_position"):
        number = 1  # several battles at once would be a melee
    heatmaps = position_heatmaps(_living(population, plane), bins=_BINS)
    content: dict[str, Any] = {
        "kind": plane.kind,
        "axes": plane.axes,
        "bounds": heatmaps[0].bounds,
        "heatmaps": [heatmap.shares.round(5).tolist() for heatmap in heatmaps],
        "heatBounds": heatmaps[0].bounds,
        "paths": [
            [_path(policy, places, rows, plane.kind) for rows in _shown(policy, plane)[:number]]
            for policy, places in zip(population, plane.places, strict=True)
        ],
    }
    if plane.kind == "navigation":
        reach = ORIGIN_DISTANCE[1] + TOUCH_DISTANCE
        content["bounds"] = ((-reach, reach), (-reach, reach))
        content["landmarks"] = _landmarks(population)
        content["radius"] = LANDMARK_RADIUS
    elif plane.kind == "football":
        content["bounds"] = _part_of_pitch(plane)
        content["aspect"] = _PITCH_ASPECT
        content["routes"] = [
            _route(policy, places) for policy, places in zip(population, plane.places, strict=True)
        ]
    elif plane.kind == "map":
        content |= _battlefield(population)
    return content


def _shown(policy: Policy, plane: Plane) -> list[Tensor]:
    """The episodes that are drawn: in football a few, won ones if there are any."""
    if plane.kind != "football":
        return policy.episodes
    return (policy.won_episodes or policy.episodes)[:_MATCHES]


def _part_of_pitch(plane: Plane) -> tuple[tuple[float, float], tuple[float, float]]:
    """The right half if nobody is ever in the left one, else all of it."""
    left = min(float(places[..., 0].min()) for places in plane.places)
    along, across = _PITCH
    return (0.0 if left > 0 else along[0], along[1]), across


def _route(policy: Policy, places: Tensor) -> list[int] | None:
    """The policy's most frequent way of the ball, if it has won."""
    ball = policy.column("ball").double()
    won = policy.won_episodes if policy.won is not None else []
    route = policy_route(ball_route(ball[rows], places[rows]) for rows in won)
    return None if route is None else list(route)


def _battlefield(population: Population) -> dict[str, Any]:
    """The ground of a StarCraft battle, as rectangles (left, low, right, high), if it is one."""
    settings = population.policies[0].config.get("env")
    name = settings.get("map_name") if isinstance(settings, dict) else None
    if name not in map_names():
        return {}
    spec = load_map(name)
    # Cells are named by their lower left corners.
    ground, cliff = (
        [(left, low, right + 1, high + 1) for left, low, right, high in cells]
        for cells in (spec.ground, spec.cliff)
    )
    left, low, right, high = zip(*ground, strict=True)
    bounds = (min(left) - 1, max(right) + 1), (min(low) - 1, max(high) + 1)
    return {"ground": ground, "cliff": cliff, "bounds": bounds}


def _landmarks(population: Population) -> list[list[float]]:
    try:
        return layout(population).tolist()
    except InputError:
        return []


def _living(population: Population, plane: Plane) -> list[Tensor]:
    return [
        places[policy.column("alive").bool()] if policy.has("alive") else places.flatten(0, 1)
        for policy, places in zip(population, plane.places, strict=True)
    ]


def _path(policy: Policy, places: Tensor, rows: Tensor, kind: Kind) -> dict[str, Any]:
    """One episode: positions [T][A][2], and the ball's, at evenly spaced steps."""
    kept = rows[torch.linspace(0, len(rows) - 1, min(len(rows), _STEPS)).round().long()]
    points = places[kept]
    if kind == "navigation":  # the start is not among the states that are reached
        points = torch.cat([torch.zeros_like(points[:1]), points])
    won = policy.won
    path: dict[str, Any] = {
        "points": _rounded(points),
        "won": None if won is None else bool(won[rows[-1]]),
    }
    if policy.has("alive"):
        path["alive"] = policy.column("alive")[kept].int().tolist()
    if policy.has("enemy_position"):
        path["enemies"] = _rounded(policy.column("enemy_position")[kept])
        path["enemyAlive"] = policy.column("enemy_alive")[kept].int().tolist()
    if policy.has("ball"):
        path["ball"] = _rounded(policy.column("ball")[kept][:, :2])
    return path


def _project(states: list[Tensor]) -> list[Tensor]:
    """States on the plane of their first two principal components [n, 1, 2]."""
    pooled = torch.cat(states)
    mean = pooled.mean(0)
    _, _, directions = torch.linalg.svd(
        pooled[:: max(1, len(pooled) // 5000)] - mean, full_matrices=False
    )
    plane = torch.zeros(2, pooled.shape[1], dtype=torch.float64)
    plane[: len(directions[:2])] = directions[:2]
    return [((some - mean) @ plane.T).unsqueeze(1) for some in states]


def _rounded(points: Tensor) -> list[Any]:
    return [
        [round(x, 4) for x in row]
        if isinstance(row[0], float)
        else [[round(x, 4) for x in p] for p in row]
        for row in points.double().tolist()
    ]
