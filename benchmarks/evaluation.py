"""The k-nearest-neighbour entropy against every peer that computes the same."""

import importlib.util
import sys
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors
from torch import Tensor

from benchmarks.memory import in_fresh_process, peak_anonymous
from benchmarks.table import Row, main
from benchmarks.timing import check_equal, in_turns, make_row
from evaluation.entropy import knn_entropy

K = 12
Peer = Callable[[Tensor], float]


def rows(*, quick: bool) -> Iterator[Row]:
    """Measure everything at the sizes of ``docs/benchmarks.md``."""
    rounds = 1 if quick else 5
    for features in (2, 10, 144):
        yield from entropy_speed(features, rounds=rounds)
    yield entropy_memory(states=100_000 if quick else 500_000)


def entropy_speed(features: int, *, rounds: int, states: int = 50_000) -> Iterator[Row]:
    """Compare the entropy with each peer's; the target is to be as fast as the best of them."""
    torch.manual_seed(0)
    some = torch.randn(states, features)
    what = f"entropy, {states} states of {features} features"
    exact = torch.tensor(knn_entropy(some), dtype=torch.float64)
    chosen = peers(features)
    for name, peer in chosen.items():
        # float32 products, as faiss has them, lose digits of small distances.
        check_equal(f"{what}, {name}", exact, torch.tensor(peer(some)).double(), rtol=1e-4)
    calls = {"ours": partial(knn_entropy, some)}
    times = in_turns(
        calls | {name: partial(peer, some) for name, peer in chosen.items()}, rounds=rounds
    )
    for name in chosen:
        yield make_row(what, times["ours"], name, times[name], most_ratio=1.0)


def entropy_memory(*, states: int, features: int = 20) -> Row:
    """Measure the memory for many states beside the table of all distances."""
    ours = in_fresh_process(_memory, states, features)
    table = 4 * states**2
    what = f"memory of the entropy, {states} states of {features} features"
    return make_row(what, [ours], "all distances at once", [table], unit="B", most=2e9)


def peers(features: int) -> dict[str, Peer]:
    """Who else can do it; trees are hopeless with many features."""
    found: dict[str, Peer] = {"scikit-learn, brute": partial(_scikit, "brute")}
    if features <= 10:
        found["scikit-learn, kd-tree"] = partial(_scikit, "kd_tree")
    if importlib.util.find_spec("faiss"):
        found["faiss-cpu, flat"] = _faiss
    found["torch, tiles and top-k"] = _tiles
    return found


def _scikit(algorithm: str, states: Tensor) -> float:
    points = states.numpy()
    search = NearestNeighbors(n_neighbors=K + 1, algorithm=algorithm).fit(points)
    return _entropy(search.kneighbors(points)[0][:, K])


def _faiss(states: Tensor) -> float:
    import faiss  # an optional peer

    faiss.omp_set_num_threads(1)
    points = states.numpy()
    index = faiss.IndexFlatL2(points.shape[1])
    index.add(points)
    return _entropy(np.sqrt(np.maximum(index.search(points, K + 1)[0][:, K], 0)))


def _tiles(states: Tensor, rows: int = 512) -> float:
    norms = states.square().sum(1)
    found = [
        torch.addmm(norms, some, states.T, alpha=-2).topk(K + 1, largest=False).values[:, K]
        + some.square().sum(1)
        for some in states.split(rows)
    ]
    return _entropy(torch.cat(found).clamp(min=0).sqrt().numpy())


def _entropy(distances: NDArray[np.floating]) -> float:
    return float(np.log1p(distances.astype(np.float64)).mean())


def _memory(states: int, features: int) -> int:
    torch.set_num_threads(1)
    some = torch.randn(states, features)
    knn_entropy(some[:100])
    return peak_anonymous(lambda: knn_entropy(some))


if __name__ == "__main__":
    sys.exit(main(only="evaluation"))
