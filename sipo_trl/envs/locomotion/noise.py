"""Random numbers that are a function of counters, so that nothing but counters has to be saved."""

import torch
from torch import Tensor

# SplitMix64 (Steele, Lea and Flood 2014), with its constants as signed integers.
_GOLDEN = 0x9E3779B97F4A7C15 - 2**64
_FIRST = 0xBF58476D1CE4E5B9 - 2**64
_SECOND = 0x94D049BB133111EB - 2**64


def counter_uniform(*counters: Tensor) -> Tensor:
    """Uniform numbers in [0, 1), each a hash of its counters alone.

    Copies of an environment that draw by (seed, copy, episode, column) get the same numbers
    whichever of them are reset together, in whatever order and on whatever device.

    Args:
        counters: integers (int64) of shapes that broadcast; the first is the seed.

    Returns:
        float64 numbers of the broadcast shape.

    Examples:
        >>> seed, copy = torch.tensor(0), torch.arange(3)
        >>> numbers = counter_uniform(seed, copy)
        >>> bool((counter_uniform(seed, copy[1:]) == numbers[1:]).all())
        True
    """
    mixed = torch.zeros_like(counters[0])
    for counter in counters:
        mixed = _mix(mixed + _GOLDEN + counter)
    return _shift(mixed, 11).double() * 2.0**-53


def _mix(bits: Tensor) -> Tensor:
    bits = (bits ^ _shift(bits, 30)) * _FIRST
    bits = (bits ^ _shift(bits, 27)) * _SECOND
    return bits ^ _shift(bits, 31)


def _shift(bits: Tensor, places: int) -> Tensor:
    """Shift to the right without the sign that torch would pull in."""
    return (bits >> places) & (2 ** (64 - places) - 1)
