"""A picture of why a calibration chose what it chose."""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from sipo_trl.algorithms.calibration import Calibration
from sipo_trl.envs.navigation_plot import COLOURS, GREY, INK

BLUE, ORANGE = COLOURS[:2]


def plot_calibration(
    calibration: Calibration, curves: Mapping[float, Tensor], *, name: str
) -> Figure:
    """Draw how far the two policies are apart, and how the reward went under each kernel width.

    Args:
        calibration: what was found.
        curves: for each kernel width, the mean reward after each update of the second policy [U];
            empty for measures without a kernel.

    Keyword Args:
        name: of the environment, for the title.

    Returns:
        The figure; ``figure.savefig("calibration.png")`` writes it, with no display needed.

    Example:
        >>> import torch
        >>> from sipo_trl.training.config import FinalStateConfig
        >>> measure, distances = FinalStateConfig(delta=0.6, alpha=0.2), torch.rand(2, 64)
        >>> found = Calibration(
        ...     measure, False, (distances[0], distances[1]), 0.5, (0.45, 0.55), (1.0, 1.0), {}
        ... )
        >>> len(plot_calibration(found, {}, name="navigation").subfigs[0].axes)
        2
    """
    measure, variance = calibration.measure, calibration.variance
    title = (
        rf"{measure.name} on {name}:  $\delta$ = {measure.delta:g},  $\alpha$ = {measure.alpha:g}"
    )
    if variance is not None:
        title += rf",  $\sigma^2$ = {variance:g}"
    figure = Figure(figsize=(11 if curves else 6.4, 5.4), dpi=150, layout="constrained")
    figure.suptitle(title, x=0.01, ha="left", color=INK, fontsize=14, fontweight="bold")
    cells = figure.add_gridspec(1, 2 if curves else 1, wspace=0.06)
    _draw_distances(figure.add_subfigure(cells[0, 0]), calibration)
    if curves:
        _draw_trends(figure.add_subfigure(cells[0, 1]), calibration, curves)
    return figure


def _draw_distances(figure: SubFigure, calibration: Calibration) -> None:
    """One histogram per direction, with their common mean and the threshold across both."""
    samples = [episodes.numpy() for episodes in calibration.episodes]
    delta = calibration.measure.delta
    low = min(0.0, *(sample.min() for sample in samples))
    high = 1.08 * max(delta, calibration.interval[1], *(sample.max() for sample in samples))
    allowed = (low, delta) if calibration.similar else (delta, high)
    rows = figure.subplots(2, 1, sharex=True, sharey=True)
    for axes, sample, label in zip(
        rows, samples, ("policy 2 from policy 1", "policy 1 from policy 2"), strict=True
    ):
        axes.hist(sample, bins=np.linspace(low, high, 41), color=BLUE, alpha=0.8)
        axes.axvspan(*allowed, color=ORANGE, alpha=0.1, lw=0, zorder=0)
        axes.axvspan(*calibration.interval, color=INK, alpha=0.2, lw=0)
        mean = axes.axvline(calibration.size, color=INK, lw=1.5)
        threshold = axes.axvline(delta, color=ORANGE, lw=2.5)
        axes.set_ylabel("episodes", color=INK)
        axes.yaxis.set_major_locator(MaxNLocator("auto", integer=True))
        _tidy(axes, label)
    bound = "at most" if calibration.similar else "at least"
    rows[0].legend(
        [mean, threshold],
        [f"mean {calibration.size:.3g}, 95 % interval", rf"{bound} $\delta$, on average"],
        frameon=False,
        fontsize=9,
        labelcolor=INK,
    )
    rows[1].set_xlim(low, high)
    noun = "similarity" if calibration.similar else "distance"
    rows[1].set_xlabel(f"{noun} of an episode", color=INK)


def _draw_trends(
    figure: SubFigure, calibration: Calibration, curves: Mapping[float, Tensor]
) -> None:
    """A row per kernel width, each on its own scale, with the fitted line."""
    rows = figure.subplots(len(curves), 1, sharex=True)
    for axes, (variance, curve) in zip(rows, curves.items(), strict=True):
        chosen = variance == calibration.variance
        update, rewards = np.arange(1, len(curve) + 1), curve.double().numpy()
        axes.plot(update, rewards, color=ORANGE if chosen else GREY, lw=1.4)
        fit = np.polynomial.Polynomial.fit(update, rewards, 1)
        axes.plot(update, fit(update), color=INK if chosen else GREY, lw=1.2, ls="--")
        label = rf"$\sigma^2$ = {variance:g}:  trend {calibration.trends[variance]:+.2f}"
        _tidy(axes, f"{label}  (chosen)" if chosen else label)
    rows[0].set_title("mean intrinsic reward", loc="right", fontsize=9, color=INK)
    rows[-1].set_xlabel("updates of policy 2", color=INK)


def _tidy(axes: Axes, label: str) -> None:
    axes.set_title(label, loc="left", fontsize=10, color=INK)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=INK, labelsize=8)
    axes.ticklabel_format(scilimits=(-3, 4), useMathText=True)
    for axis in (axes.xaxis, axes.yaxis):
        axis.get_offset_text().set(fontsize=8, color=INK)
