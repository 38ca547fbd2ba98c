"""One seed decides everything."""

import hashlib
import random

import numpy as np
import torch


def derive_seed(seed: int, *names: int | str) -> int:
    """A seed for one part of a run, unrelated to those of all other parts.

    Examples:
        >>> derive_seed(0, "iteration", 1) == derive_seed(0, "iteration", 1)
        True
        >>> derive_seed(0, "iteration", 1) == derive_seed(1, "iteration", 0)
        False
    """
    digest = hashlib.sha256(repr((seed, *names)).encode()).digest()
    return int.from_bytes(digest[:4], "big")


def seed_everything(seed: int) -> None:
    """Seeds torch (all devices), numpy and Python."""
    torch.manual_seed(seed)
    np.random.seed(seed)  # noqa: NPY002 - libraries below us draw from the global generator
    random.seed(seed)
