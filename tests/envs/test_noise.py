import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sipo_trl.envs.noise import counter_uniform


def splitmix64(bits: int) -> int:
    """The published finaliser, on Python's integers."""
    bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EB % 2**64
    return bits ^ (bits >> 31)


@given(st.integers(0, 2**63 - 1), st.integers(0, 2**63 - 1))
def test_it_is_a_place_in_a_splitmix64_sequence(seed, place):
    start = seed * 0xBF58476D1CE4E5B9
    bits = splitmix64((start + place * 0x9E3779B97F4A7C15) % 2**64)
    number = counter_uniform(torch.tensor(seed), torch.tensor([place]))
    assert number.item() == (bits >> 11) * 2.0**-53


def test_numbers_are_uniform_and_neighbours_unrelated():
    numbers = torch.stack(
        [counter_uniform(torch.tensor(seed), torch.arange(2000)) for seed in range(10)]
    ).numpy()
    assert stats.kstest(numbers.ravel(), "uniform").pvalue > 0.01
    assert len(np.unique(numbers)) == numbers.size
    for axis in (0, 1):
        first, second = np.delete(numbers, -1, axis), np.delete(numbers, 0, axis)
        assert abs(np.corrcoef(first.ravel(), second.ravel())[0, 1]) < 0.03
