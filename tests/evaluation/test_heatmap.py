import numpy as np
import pytest
import torch

from evaluation.heatmap import plot_heatmaps, position_heatmaps


def test_every_living_agent_counts_once():
    positions = torch.tensor([[[0.1, 0.1], [0.9, 0.1]], [[0.1, 0.1], [0.9, 0.9]]])
    alive = torch.tensor([[True, True], [True, False]])
    (heatmap,) = position_heatmaps([positions], [alive], bins=2, bounds=((0, 1), (0, 1)))
    np.testing.assert_allclose(heatmap.shares, [[2 / 3, 0], [1 / 3, 0]])


def test_all_policies_share_one_grid_that_holds_them():
    first, second = torch.rand(50, 2), torch.rand(80, 2) + 3
    one, other = position_heatmaps([first, second], bins=7)
    assert one.bounds == other.bounds
    assert one.shares.sum() == pytest.approx(1)
    assert other.shares.sum() == pytest.approx(1)
    assert one.overlap(other) == 0
    assert one.overlap(one) == pytest.approx(1)


def test_a_policy_whose_agents_are_all_dead_is_nowhere():
    positions, alive = torch.rand(5, 2, 2), torch.zeros(5, 2, dtype=torch.bool)
    one, none = position_heatmaps([positions, positions], [~alive, alive])
    assert one.shares.sum() == pytest.approx(1)
    assert none.shares.sum() == 0


def test_pictures_have_one_panel_per_policy():
    heatmaps = position_heatmaps([torch.rand(9, 2) for _ in range(7)])
    figure = plot_heatmaps(heatmaps, [f"policy {n}" for n in range(7)])
    assert [axes.get_title() for axes in figure.axes] == [f"policy {n}" for n in range(7)]
