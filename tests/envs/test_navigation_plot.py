import io

import pytest
import torch
from matplotlib.collections import LineCollection

from sipo_trl.envs import draw_landmarks
from sipo_trl.envs.navigation_plot import plot_paths

LANDMARKS = torch.tensor([[0.8, 0.0], [0.0, 0.8], [-0.8, 0.0]])


def straight(goal: torch.Tensor, reach: float = 0.9) -> torch.Tensor:
    return torch.linspace(0, reach, 10).unsqueeze(-1) * goal


def test_the_title_counts_distinct_landmarks():
    right, up, left = LANDMARKS
    policies = [
        [straight(right)],
        [straight(right), straight(right), straight(up)],  # mostly the same
        [straight(left), straight(up, reach=0.3)],
        [straight(up, reach=0.3)],  # never arrives, so counts none
    ]
    (axes,) = plot_paths(LANDMARKS, policies).axes
    assert axes.get_title(loc="left") == "2 of 3 landmarks reached"
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == ["policy 1 → A", "policy 2 → A", "policy 3 → C", "policy 4 → none"]


def test_each_policy_has_a_look_of_its_own():
    landmarks = draw_landmarks(5, seed=0)
    figure = plot_paths(landmarks, [[straight(landmarks[i % 5])] for i in range(12)])
    lines = [c for c in figure.axes[0].collections if isinstance(c, LineCollection)]
    looks = {(str(line.get_color()), str(line.get_linestyle())) for line in lines}
    assert len(looks) == 12


def test_it_draws_without_a_display():
    path = straight(LANDMARKS[0]).requires_grad_()
    buffer = io.BytesIO()
    plot_paths(LANDMARKS, [[path, path[:1]]]).savefig(buffer, format="png", dpi=40)
    assert buffer.getvalue().startswith(b"\x89PNG")


def test_a_policy_without_paths_is_an_error():
    with pytest.raises(ValueError, match="at least one"):
        plot_paths(LANDMARKS, [[straight(LANDMARKS[0])], []])
