import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.neighbors import NearestNeighbors

from evaluation import neighbours
from evaluation.neighbours import kth_neighbour_distances


def brute(states: torch.Tensor, k: int) -> np.ndarray:
    points = states.double().numpy()
    search = NearestNeighbors(n_neighbors=k + 1, algorithm="brute").fit(points)
    return search.kneighbors(points)[0][:, k]


def with_ties(states: torch.Tensor) -> torch.Tensor:
    """Exact doubles, many of one state, and a lattice of equal distances."""
    lattice = (states[:150] * 2).round() / 2
    return torch.cat([states, states[:200], states[:200], lattice, states[:1].expand(90, -1)])


@pytest.mark.parametrize("features", [1, 2, 10, 144])
@pytest.mark.parametrize("k", [1, 12])
def test_equals_brute_force(features, k):
    for states in (torch.randn(900, features), with_ties(torch.randn(900, features))):
        ours = kth_neighbour_distances(states, k)
        np.testing.assert_allclose(ours.numpy(), brute(states, k), rtol=0, atol=1e-6)


@pytest.mark.parametrize("features", [3, 20])
def test_far_from_the_origin_nothing_cancels(features):
    states = torch.randn(400, features, dtype=torch.float64)
    near, far = (kth_neighbour_distances(states + shift, 5) for shift in (0, 1e6))
    torch.testing.assert_close(near, far, rtol=0, atol=1e-7)


def test_where_float32_cannot_tell_float64_decides():
    # Distances of 1e-5 beside norms of 10: in float32 all of these products are the same.
    states = 10 + 1e-5 * torch.randn(600, 20, dtype=torch.float64)
    states[:300] -= 20
    ours = kth_neighbour_distances(states, 12)
    exact = torch.cdist(states, states, compute_mode="donot_use_mm_for_euclid_dist")
    torch.testing.assert_close(ours, exact.kthvalue(13, dim=1).values, rtol=1e-9, atol=0)


@pytest.mark.parametrize("k", [3, 12, 150])
def test_more_states_than_one_tile_holds(monkeypatch, k):
    monkeypatch.setattr(neighbours, "_TILE", 128)
    for states in (torch.randn(1000, 20), with_ties(torch.randn(400, 20))):
        ours = kth_neighbour_distances(states, k)
        np.testing.assert_allclose(ours.numpy(), brute(states, k), rtol=0, atol=1e-6)


def test_states_that_come_ever_nearer_to_each_other(monkeypatch):
    monkeypatch.setattr(neighbours, "_TILE", 128)
    states = torch.randn(900, 20) * torch.linspace(5, 0.01, 900).unsqueeze(1)
    ours = kth_neighbour_distances(states, 12)
    np.testing.assert_allclose(ours.numpy(), brute(states, 12), rtol=0, atol=1e-6)


def test_states_beyond_float32():
    states = 1e25 * torch.randn(300, 20, dtype=torch.float64)
    np.testing.assert_allclose(kth_neighbour_distances(states, 5).numpy(), brute(states, 5))


def test_more_doubtful_states_than_one_table_holds(monkeypatch):
    states = 10 + 1e-5 * torch.randn(300, 20, dtype=torch.float64)
    states[:150] -= 20
    whole = kth_neighbour_distances(states, 12)
    monkeypatch.setattr(neighbours, "_TABLE", 50_000)
    assert torch.equal(kth_neighbour_distances(states, 12), whole)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([2, 9]), st.integers(1, 5))
def test_the_order_of_states_does_not_matter(seed, features, k):
    generator = torch.Generator().manual_seed(seed)
    states = torch.randint(4, (40, features), generator=generator).float()
    order = torch.randperm(40, generator=generator)
    ours, theirs = (
        kth_neighbour_distances(states, k)[order],
        kth_neighbour_distances(states[order], k),
    )
    torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("features", [2, 20])
def test_the_states_are_left_as_they_were(features):
    states = torch.randn(50, features, dtype=torch.float64) + 3
    before = states.clone()
    kth_neighbour_distances(states, 3)
    assert torch.equal(states, before)


def test_images_are_flattened():
    images = torch.randint(256, (30, 3, 4, 4), dtype=torch.uint8)
    assert torch.equal(
        kth_neighbour_distances(images, 2), kth_neighbour_distances(images.flatten(1), 2)
    )


@pytest.mark.parametrize("k", [0, 5, 6])
def test_k_beyond_the_data_is_refused(k):
    with pytest.raises(ValueError, match=f"k is {k}, but there are 5 states"):
        kth_neighbour_distances(torch.randn(5, 2), k)


def test_nan_is_refused():
    with pytest.raises(ValueError, match="not finite"):
        kth_neighbour_distances(torch.tensor([[0.0], [float("nan")], [1.0]]), 1)


def test_progress_is_told(monkeypatch):
    monkeypatch.setattr(neighbours, "_TILE", 128)
    told = []
    kth_neighbour_distances(torch.randn(500, 20), 3, progress=lambda *done: told.append(done))
    assert told == [(50 * tile, 500) for tile in range(10)]
