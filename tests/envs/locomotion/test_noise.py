import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sipo_trl.envs.locomotion import counter_uniform


def splitmix64(state: int) -> int:
    """The published algorithm, on Python's integers."""
    bits = (state + 0x9E3779B97F4A7C15) % 2**64
    bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EB % 2**64
    return bits ^ (bits >> 31)


@given(st.lists(st.integers(0, 2**62), min_size=1, max_size=4))
def test_it_is_a_chain_of_splitmix64(counters):
    bits = 0
    for counter in counters:
        bits = splitmix64((bits + counter) % 2**64)
    tensors = [torch.tensor([counter]) for counter in counters]
    assert counter_uniform(*tensors).item() == (bits >> 11) * 2.0**-53


def test_numbers_are_uniform_and_neighbours_unrelated():
    seed, copy = torch.tensor(3), torch.arange(200).unsqueeze(-1)
    numbers = counter_uniform(seed, copy, torch.ones_like(copy), torch.arange(50)).numpy()
    assert stats.kstest(numbers.ravel(), "uniform").pvalue > 0.01
    assert len(np.unique(numbers)) == numbers.size
    for axis in (0, 1):
        first, second = np.delete(numbers, -1, axis), np.delete(numbers, 0, axis)
        assert abs(np.corrcoef(first.ravel(), second.ravel())[0, 1]) < 0.03


def test_each_counter_matters():
    one = counter_uniform(*torch.tensor([1, 2, 3]))
    assert counter_uniform(*torch.tensor([2, 1, 3])) != one
    assert counter_uniform(*torch.tensor([1, 3, 2])) != one
