"""Small archives of every domain, made by hand."""

from pathlib import Path

import torch
from torch import Tensor

from sipo_trl.archive import Archive
from sipo_trl.registry import build_policy

EAST, NORTH, WEST = (1.0, 0.0), (0.0, 1.0), (-1.0, 0.0)
NAVIGATION = {"name": "navigation", "horizon": 12, "quick_frames": 1, "full_frames": 1}
NAVIGATION |= {"solved": 0.9, "stack": 1, "columns": ["landmark"], "num_landmarks": 4}
ACTOR = {
    "observations": [{"key": "observation", "shape": [10], "scope": "root"}],
    "action": {
        "key": "action",
        "kind": "continuous",
        "size": 2,
        "low": [-1.0, -1.0],
        "high": [1.0, 1.0],
    },
    "agents": None,
    "mask_key": None,
    "distribution": "normal",
    "initial_std": 0.3,
    "network": {"hidden": [4], "activation": "tanh", "layer_norm": False, "gru": None},
}


def walker(direction: tuple[float, float]) -> torch.nn.Module:
    """A policy that walks in one direction, whatever it sees."""
    policy = build_policy({"builder": "actor", "kwargs": ACTOR})
    weights = policy.state_dict()
    (weight,) = [name for name in weights if name.endswith("loc.weight")]
    (bias,) = [name for name in weights if name.endswith("loc.bias")]
    policy.load_state_dict(
        {**weights, weight: torch.zeros_like(weights[weight]), bias: torch.tensor(direction)}
    )
    return policy


def index_columns(episodes: int, steps: int) -> dict[str, Tensor]:
    return {
        "episode": torch.arange(episodes).repeat_interleave(steps),
        "step": torch.arange(steps).repeat(episodes),
    }


def navigation_run(folder: Path, directions=(EAST, NORTH, WEST), episodes=4, **env) -> Path:
    """A whole run folder, with curves; policies walk straight and are stored with some noise."""
    archive = Archive.create(folder / "archive")
    (folder / "config.yaml").write_text("seed: 0\n")
    for index, direction in enumerate(directions):
        steps = torch.arange(1, 9).repeat(episodes).unsqueeze(1)
        states = 0.1 * steps * torch.tensor(direction) + 0.005 * torch.randn(8 * episodes, 2)
        columns = index_columns(episodes, 8)
        last = columns["step"] == 7
        archive.append(
            states,
            policy=walker(direction),
            metrics={"return": float(index), "success": 1.0},
            config={
                "env": {**NAVIGATION, **env},
                "seed": 0,
                "measure": {"name": "rbf", "delta": 0.03},
            },
            success=torch.ones(len(states), dtype=torch.bool),
            landmark=torch.where(last, index, -1).unsqueeze(1),
            **{"return": torch.full((len(states),), float(index))},
            **columns,
        )
        write_curve(folder / "iterations" / f"{index + 1:04d}", index)
    return folder


def write_curve(folder: Path, earlier: int) -> None:
    folder.mkdir(parents=True)
    names = [f"{kind}_{j + 1}" for kind in ("distance", "multiplier") for j in range(earlier)]
    rows = [f"{n // 3},{1000 * n},{n / 5},{n / 10}" + ",0.5" * len(names) for n in range(6)]
    text = "\n".join([",".join(["attempt", "frames", "return", "success", *names]), *rows])
    (folder / "metrics.csv").write_text(text + "\n")


def football_archive(folder: Path, routes, wins=None, kept=slice(None)) -> Path:
    """Three players in a row; in each policy's episodes the ball goes along its route."""
    archive = Archive.create(folder)
    players = torch.tensor([[0.0, 0.0], [0.5, 0.0], [0.9, 0.1]])
    for number, route in enumerate(routes):
        ball = torch.cat([players[list(route)], torch.zeros(len(route), 1)], 1).repeat(3, 1)
        rows = len(ball)
        position = players.expand(rows, 3, 2)
        features = [position.flatten(1), torch.zeros(rows, 6), ball, torch.zeros(rows, 3)]
        won = rows if wins is None or wins[number] else 0
        data = {
            "ball": ball,
            "position": position.contiguous(),
            "success": torch.arange(rows) < won,
            **index_columns(3, len(route)),
        }
        states = torch.cat(features, 1) + 0.01 * torch.randn(rows, 18)
        archive.append(states[kept], **{name: column[kept] for name, column in data.items()})
    return folder


def battle_archive(folder: Path) -> Path:
    """Two agents of four features, of which one dies half-way."""
    archive = Archive.create(folder)
    for shift in (0.0, 0.5):
        states = torch.rand(40, 8) + shift
        alive = torch.ones(40, 2, dtype=torch.bool)
        alive[20:, 1] = False
        archive.append(
            states,
            alive=alive,
            enemy_position=torch.full((40, 1, 2), 16.0),
            enemy_alive=alive[:, 1:],
            config={"env": {"name": "smac_2c_vs_64zg", "map_name": "2c_vs_64zg", "stack": 1}},
            position=states.view(40, 2, 4)[..., 2:4].contiguous(),
            success=torch.ones(40, dtype=torch.bool),
            **index_columns(4, 10),
        )
    return folder


def humanoid_archive(folder: Path, policies=3) -> Path:
    """Torques that differ by the policy's index in every joint."""
    archive = Archive.create(folder)
    for index in range(policies):
        states = torch.randn(60, 216)
        states[:, -54] += 3 * index
        archive.append(
            states,
            torque=torch.full((60, 21), float(index)),
            config={"env": {"name": "humanoid", "stack": 4}},
            **index_columns(3, 20),
        )
    return folder
