import random

import numpy as np
import torch

from sipo_trl.training.seeds import derive_seed, seed_everything


def test_parts_of_a_run_have_seeds_of_their_own() -> None:
    seeds = {derive_seed(seed, i, j) for seed in range(10) for i in range(10) for j in range(10)}
    assert len(seeds) == 1000
    assert all(0 <= seed < 2**32 for seed in seeds)


def test_one_seed_decides_all_generators() -> None:
    draws = []
    for _ in range(2):
        seed_everything(7)
        draws.append((random.random(), np.random.rand(), torch.rand(()).item()))  # noqa: NPY002
    assert draws[0] == draws[1]
