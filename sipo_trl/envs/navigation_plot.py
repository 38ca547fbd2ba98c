"""A picture of where policies go in 2-D navigation."""

from collections.abc import Sequence
from typing import Literal

import torch
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle
from matplotlib.patheffects import withStroke
from torch import Tensor

from sipo_trl.envs.navigation import (
    AGENT_RADIUS,
    LANDMARK_RADIUS,
    ORIGIN_DISTANCE,
    TOUCH_DISTANCE,
    most_frequent_landmark,
    touched_landmark,
)

LineStyle = Literal["solid", "dashed", "dotted"]

# Okabe and Ito's colours that stand out on white and are told apart by colour-blind readers too.
# Further policies repeat them in other line styles.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
STYLES: tuple[LineStyle, ...] = ("solid", "dashed", "dotted")
INK, GREY, PAPER = "#333333", "#AAAAAA", "#F7F7F5"
HALO = [withStroke(linewidth=3, foreground="white")]


def plot_paths(landmarks: Tensor, paths: Sequence[Sequence[Tensor]]) -> Figure:
    """Draw the paths of several policies between the start and the landmarks.

    Landmarks are lettered in the order of their index. Each takes the colour of the first policy
    that ends there most often, and stays grey if there is none; the dotted ring around it is
    where an agent's centre stops.

    Args:
        landmarks: centres of the landmarks [N, 2].
        paths: for each policy some paths, each [T, 2], from the start to the final state.

    Returns:
        The figure; ``figure.savefig("paths.png")`` writes it, with no display needed.

    Examples:
        >>> landmarks = torch.tensor([[0.8, 0.0], [0.0, -0.8]])
        >>> right = torch.tensor([[0.0, 0.0], [0.7, 0.0]])
        >>> figure = plot_paths(landmarks, [[right], [right, right.flip(-1)]])
        >>> figure.axes[0].get_title(loc="left")
        '1 of 2 landmarks reached'
    """
    if not all(paths):
        raise ValueError(
            "paths hold a policy without a path: give it at least one or leave it out."
        )
    landmarks = landmarks.detach().cpu()
    policies = [[path.detach().cpu() for path in policy] for policy in paths]
    finals = [torch.stack([path[-1] for path in policy]) for policy in policies]
    goals = [most_frequent_landmark(touched_landmark(final, landmarks)) for final in finals]

    figure = Figure(figsize=(6.4, 6.8), dpi=150, layout="constrained")
    axes = figure.add_subplot()
    _draw_world(axes, landmarks, goals)
    for index, (policy, final) in enumerate(zip(policies, finals, strict=True)):
        _draw_policy(axes, index, policy, final)
    distinct = len(set(goals) - {-1})
    axes.set_title(
        f"{distinct} of {len(landmarks)} landmarks reached",
        loc="left",
        color=INK,
        fontsize=14,
        fontweight="bold",
    )
    _add_legend(axes, goals)
    return figure


def _draw_world(axes: Axes, landmarks: Tensor, goals: Sequence[int]) -> None:
    """The start, and the landmarks within the disc that they are drawn from."""
    reach = max(float(landmarks.norm(dim=-1).max()), ORIGIN_DISTANCE[1]) + TOUCH_DISTANCE
    axes.add_patch(Circle((0, 0), reach, facecolor=PAPER, zorder=0))
    for index, (x, y) in enumerate(landmarks.tolist()):
        colour = _look(goals.index(index))[0] if index in goals else GREY
        tint = to_rgba(colour, 0.25)
        axes.add_patch(Circle((x, y), LANDMARK_RADIUS, fc=tint, ec=colour, lw=1.5, zorder=2))
        axes.add_patch(Circle((x, y), TOUCH_DISTANCE, fill=False, ec=colour, ls=":", zorder=2))
        text = axes.text(x, y, _letter(index), ha="center", va="center", zorder=6)
        text.set(color=INK, fontsize=12, fontweight="bold", path_effects=HALO)
    axes.add_patch(Circle((0, 0), AGENT_RADIUS, fc="white", ec=INK, lw=1.5, zorder=5))
    text = axes.text(0, -1.3 * AGENT_RADIUS, "start", ha="center", va="top", zorder=6)
    text.set(color=INK, fontsize=9, path_effects=HALO)
    # A path that leaves the world is cut off rather than allowed to shrink it.
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
    axes.set_axis_off()


def _draw_policy(axes: Axes, index: int, paths: Sequence[Tensor], final: Tensor) -> None:
    colour, style = _look(index)
    lines = LineCollection([path.numpy() for path in paths], colors=colour, linestyles=style)
    # Many paths become a cloud, a few stay lines.
    lines.set(alpha=max(0.15, 0.9 / len(paths) ** 0.5), linewidth=1.6, joinstyle="round", zorder=3)
    axes.add_collection(lines)
    x, y = final.numpy().T
    axes.scatter(x, y, s=16, color=colour, edgecolor="white", linewidth=0.5, zorder=4)


def _look(index: int) -> tuple[str, LineStyle]:
    """Colour and line style of a policy."""
    return COLOURS[index % len(COLOURS)], STYLES[index // len(COLOURS) % len(STYLES)]


def _letter(landmark: int) -> str:
    return chr(ord("A") + landmark)


def _add_legend(axes: Axes, goals: Sequence[int]) -> None:
    handles = []
    for index, goal in enumerate(goals):
        colour, style = _look(index)
        target = _letter(goal) if goal >= 0 else "none"
        label = f"policy {index + 1} → {target}"
        handles.append(Line2D([], [], color=colour, linestyle=style, linewidth=2.5, label=label))
    axes.legend(
        handles=handles,
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        ncols=min(4, len(handles)),
        frameon=False,
        fontsize=10,
        labelcolor=INK,
    )
