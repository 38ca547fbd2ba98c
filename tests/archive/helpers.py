"""What several tests of the archive need: a policy of odd weights, and an attacker's tools."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from sipo_trl.registry import build_policy, register_policy


class OddPolicy(nn.Module):
    """Weights of every kind that has troubled a file format."""

    def __init__(self, *, width: int = 3) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, width), nn.BatchNorm1d(width))
        self.tied = self.net[0]
        self.scale = nn.Parameter(torch.randn(()))
        self.small = nn.Parameter(torch.randn(width).bfloat16())
        self.register_buffer("none_yet", torch.zeros(0))
        self.register_buffer("mask", torch.rand(width) > 0.5)
        self.register_buffer("count", torch.tensor(2**62 + 1))
        self.register_buffer("odd", torch.tensor([float("nan"), -0.0, float("inf")]))
        # tensordict's meta.json uses these two names for itself.
        self.register_buffer("shape", torch.arange(3))
        self.register_buffer("device", torch.arange(3.0))


register_policy("odd", OddPolicy)


def odd_policy(width: int = 3) -> nn.Module:
    return build_policy({"builder": "odd", "kwargs": {"width": width}})


def same_bits(a: Tensor, b: Tensor) -> bool:
    """Equality that tells -0.0 from 0.0 and a NaN from another dtype's."""
    return (a.dtype, a.shape) == (b.dtype, b.shape) and a.contiguous().flatten().view(
        torch.uint8
    ).tolist() == b.contiguous().flatten().view(torch.uint8).tolist()


def listing(folder: Path) -> dict[str, tuple[int, int, int]]:
    """Return size and times of everything in a folder, itself included."""
    found = {}
    for path in (folder, *folder.rglob("*")):
        status = path.lstat()
        found[str(path)] = (status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    return found


def edit_json(path: Path, change: Callable[[Any], None]) -> None:
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


def reseal(folder: Path, *, change: Callable[[Any], None] = lambda manifest: None) -> None:
    """Make sizes and checksums match whatever an attacker has done to an archive's files."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    for entry in manifest["entries"]:
        for name, record in entry["files"].items():
            content = (folder / "entries" / entry["name"] / name).read_bytes()
            record.update(size=len(content), sha256=hashlib.sha256(content).hexdigest())
    change(manifest)
    manifest.pop("sha256")
    text = json.dumps(manifest, sort_keys=True)
    manifest["sha256"] = hashlib.sha256(text.encode()).hexdigest()
    path.write_text(json.dumps(manifest))


def random_tensor(dtype, shape, seed):
    numbers = torch.randn(shape, generator=torch.Generator().manual_seed(seed)) * 50
    return numbers.abs().to(dtype) if dtype == torch.uint8 else numbers.to(dtype)
