"""Random numbers that are a function of counters, so that nothing but counters has to be saved."""

import torch
from torch import Tensor

# SplitMix64 (Steele, Lea and Flood 2014), with its constants as signed integers.
_GOLDEN = 0x9E3779B97F4A7C15 - 2**64
_FIRST = 0xBF58476D1CE4E5B9 - 2**64
_SECOND = 0x94D049BB133111EB - 2**64


def counter_uniform(seed: Tensor, counter: Tensor) -> Tensor:
    """Uniform numbers in [0, 1): those at some places of the seed's SplitMix64 sequence.

    Copies of an environment whose places follow from their index and their number of episodes get
    the same numbers whichever of them are reset together, and on whatever device.

    Args:
        seed: one integer (int64).
        counter: places in the sequence (int64) [*].

    Returns:
        float64 numbers [*].

    Examples:
        >>> seed, places = torch.tensor(0), torch.arange(3)
        >>> numbers = counter_uniform(seed, places)
        >>> bool((counter_uniform(seed, places[1:]) == numbers[1:]).all())
        True
    """
    # Times an odd number, so that neighbouring seeds begin at places far from each other.
    bits = torch.add(seed * _FIRST, counter, alpha=_GOLDEN)
    bits = (bits ^ _shift(bits, 30)).mul_(_FIRST)
    bits = (bits ^ _shift(bits, 27)).mul_(_SECOND)
    bits = bits ^ _shift(bits, 31)
    return _shift(bits, 11).double().mul_(2.0**-53)


def _shift(bits: Tensor, places: int) -> Tensor:
    """Shift to the right without the sign that torch would pull in."""
    return (bits >> places).bitwise_and_(2 ** (64 - places) - 1)
