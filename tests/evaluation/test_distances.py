import numpy as np
import torch
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import rbf_kernel

from evaluation.distances import (
    distance_matrices,
    final_state_distances,
    rbf_distances,
    wasserstein_distances,
)


def test_rbf_equals_scikit_learn():
    states = [torch.randn(30 + 5 * n, 3) * 0.2 + 0.1 * n for n in range(3)]
    scale = states[0].std(0, correction=0).numpy()
    scaled = [some.numpy() / scale for some in states]
    # sigma^2 = 0.02, times the number of features.
    expected = [[-rbf_kernel(a, b, gamma=1 / 0.12).mean() for b in scaled] for a in scaled]
    np.testing.assert_allclose(rbf_distances(states), expected, rtol=1e-4, atol=1e-7)
    wide = [[-rbf_kernel(a, b, gamma=1 / 3).mean() for b in scaled] for a in scaled]
    np.testing.assert_allclose(rbf_distances(states, variance=0.5), wide, rtol=1e-4)


def test_final_states_equal_scipy():
    finals = [torch.randn(4 + n, 2) for n in range(3)]
    expected = [[cdist(a, b).mean() for b in finals] for a in finals]
    np.testing.assert_allclose(final_state_distances(finals), expected, rtol=1e-5)


def test_critics_see_what_is_farther_and_nothing_between_equals():
    states = [torch.randn(300, 2) * 0.3 + shift for shift in (0.0, 1.0, 3.0)]
    matrix = wasserstein_distances(states)
    assert matrix[0, 2] > matrix[0, 1] > 0
    assert np.array_equal(np.diag(matrix), np.zeros(3))
    assert np.array_equal(matrix, wasserstein_distances(states))
    # Whoever comes first: other critics, and units of the first policy, hardly change it.
    np.testing.assert_allclose(matrix, wasserstein_distances(states[::-1])[::-1, ::-1], rtol=0.3)
    equal = wasserstein_distances([states[0], states[0]])
    np.testing.assert_allclose(equal, 0, atol=1e-7)


def test_without_episodes_there_are_no_final_states():
    states = [torch.zeros(3, 2), torch.ones(3, 2)]
    assert list(distance_matrices(states)) == ["rbf", "wd"]
