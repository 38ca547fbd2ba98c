"""What two policies that learned the task alone tell about a measure's settings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from tensordict import TensorDict, TensorDictBase
from torch import Tensor, nn

from sipo_trl.archive import Archive
from sipo_trl.envs.episodes import remembering
from sipo_trl.measures import ReferenceMeasure, StateDistanceMeasure
from sipo_trl.training.config import ITRConfig, MeasureConfig, RBFConfig
from sipo_trl.training.evaluation import Evaluation, evaluate, teach
from sipo_trl.training.run_folder import RunError
from sipo_trl.training.seeds import derive_seed

VARIANCES = (1e-3, 5e-3, 1e-2, 2e-2, 1e-1)  # the paper's sweep (appendix, "Variance Factor")
MAX_WATCHED = 512  # states of each batch that are looked at while a policy learns
CLEAR_TREND = 0.5  # below, noise would choose
BOOTSTRAPS = 2000


class Watch(ReferenceMeasure):
    """Asks for no distance, and tells what other measures make of the states.

    Args:
        references: an archive, or one tensor [n_j, *F] per archived policy; may be empty.
        watched: the measures by name, of the same references.

    Example:
        >>> from sipo_trl.measures import RBFMeasure
        >>> references = [torch.zeros(3, 2)]
        >>> watch = Watch(references, {"kernel": RBFMeasure(references)})
        >>> watch.threshold(0.1), watch.reward(torch.ones(1, 2))
        (-inf, tensor([[0.]]))
        >>> watch.update(torch.zeros(4, 5, 2))["kernel"]
        tensor(-1.)
    """

    def __init__(
        self, references: Archive | Sequence[Tensor], watched: Mapping[str, StateDistanceMeasure]
    ) -> None:
        super().__init__(references)
        self._names = list(watched)
        self._watched = nn.ModuleList(watched.values())

    def threshold(self, delta: float) -> float:
        """Return a bound that everything keeps."""
        return -torch.inf

    def update(self, states: Tensor) -> TensorDictBase:
        """Return the mean reward of each watched measure, over some of the states [*, *F]."""
        if self.state_shape is None:
            return super().update(states)
        flat = self._flatten(states, self.state_shape)
        some = flat[:: -(-len(flat) // MAX_WATCHED)]
        metrics = TensorDict()
        for name, measure in zip(self._names, self._watched, strict=True):
            assert isinstance(measure, StateDistanceMeasure)
            metrics[name] = measure.reward(some).mean()
        return metrics

    def _distances(self, states: Tensor) -> Tensor:
        return states.new_zeros(len(states), self.num_references)


@dataclass
class WatchConfig(MeasureConfig):
    """No distance is asked for: policies learn the task alone, while measures look on."""

    name: str = "watch"
    delta: float = 0.0
    watched: dict[str, MeasureConfig] = field(default_factory=dict)
    """What looks on, by name."""

    def make(self, references: Archive | Sequence[Tensor], *, horizon: int) -> Watch:
        """The watch; its figures are per step, without the factor 1/H."""
        measures = {name: some.make(references, horizon=1) for name, some in self.watched.items()}
        return Watch(references, measures)


@dataclass(frozen=True)
class Calibration:
    """A measure's settings, and what they were found from.

    Attributes:
        measure: the settings.
        similar: whether the measure speaks of similarities, not of distances.
        episodes: size of the distance, or similarity, in each episode [E]: of policy 2 from
            policy 1, and of policy 1 from policy 2.
        size: the mean over both.
        interval: 95 % of its bootstraps over episodes.
        returns: mean return of either policy.
        trends: for each kernel width of the sweep, how the reward went (see :func:`trend`).
    """

    measure: MeasureConfig
    similar: bool
    episodes: tuple[Tensor, Tensor]
    size: float
    interval: tuple[float, float]
    returns: tuple[float, float]
    trends: dict[float, float]

    @property
    def variance(self) -> float | None:
        """The kernel's width, if there is a kernel."""
        return self.measure.variance if isinstance(self.measure, RBFConfig) else None

    @property
    def clear(self) -> bool:
        """Whether some kernel width shows a trend that is more than noise."""
        return any(abs(correlation) >= CLEAR_TREND for correlation in self.trends.values())


def watch_config(measure: MeasureConfig) -> WatchConfig:
    """What to watch for the calibration of a measure: the kernel's sweep, or nothing.

    Example:
        >>> list(watch_config(RBFConfig()).watched)[0]
        'variance_0.001'
    """
    if not isinstance(measure, RBFConfig):
        return WatchConfig()
    sweep = {f"variance_{v:g}": replace(measure, variance=v) for v in VARIANCES}
    return WatchConfig(watched=dict(sweep))


def calibrate(
    config: ITRConfig,
    archive: Archive,
    curves: Mapping[float, Tensor],
    *,
    c1: float,
    c2: float,
    episodes: int,
) -> Calibration:
    """Finds a measure's settings from two policies (the paper's appendix, "Threshold" and after).

    A policy's distance from the other is measured as iterative learning does it: its sampled
    episodes against the other's archive entry.

    Args:
        config: the settings of the run that made the policies.
        archive: the two policies.
        curves: for each kernel width, the mean reward after each update of the second one [U].

    Keyword Args:
        c1: factor between the distance of the two and the threshold.
        c2: what the constraint may weigh, at most, in returns of the task.
        episodes: number of episodes that are played with each policy.
    """
    trends = {variance: trend(curve) for variance, curve in curves.items()}
    measure = _with_steepest(config.measure, trends)
    similar = measure.make([], horizon=config.env.horizon).threshold(1.0) < 0
    played = [_play(config, archive, index, episodes) for index in (0, 1)]
    returns = played[0].returns.mean().item(), played[1].returns.mean().item()
    sign = -1 if similar else 1
    second, first = (
        sign * episode_distances(_learned(config, measure, archive, some), some)[:, other]
        for some, other in ((played[1], 0), (played[0], 1))
    )
    size = (first.mean() + second.mean()).item() / 2
    _check_scales(size, max(returns), similar)
    delta = _round(size / c1 if similar else size * c1)
    alpha = _round(abs(max(returns)) / (c2 * config.algorithm.multiplier.maximum * delta))
    return Calibration(
        measure=replace(measure, delta=delta, alpha=alpha, unit=delta),
        similar=similar,
        episodes=(second, first),
        size=size,
        interval=bootstrap(second, first, seed=derive_seed(config.seed, "bootstrap")),
        returns=returns,
        trends=trends,
    )


def _with_steepest(measure: MeasureConfig, trends: Mapping[float, float]) -> MeasureConfig:
    """The measure with the kernel width of the steepest trend, if that is clear."""
    steepest = max(trends, key=lambda variance: abs(trends[variance]), default=None)
    if steepest is None or abs(trends[steepest]) < CLEAR_TREND:
        return measure
    assert isinstance(measure, RBFConfig)
    return replace(measure, variance=steepest)


def trend(curve: Tensor) -> float:
    """How steadily a curve [U] rises or falls: its correlation with time, from -1 to 1.

    This is the slope of the fitted line with both axes in standard deviations, so that curves of
    wide and narrow kernels, whose sizes differ by orders of magnitude, compare; noise counts
    against a curve.

    Example:
        >>> round(trend(torch.tensor([5.0, 4.0, 3.0])), 3), trend(torch.ones(3))
        (-1.0, 0.0)
    """
    time = torch.arange(len(curve), dtype=torch.float64)
    correlation = torch.corrcoef(torch.stack([time, curve.double()]))
    return correlation[0, 1].nan_to_num(0.0).item()


def episode_distances(measure: StateDistanceMeasure, played: Evaluation) -> Tensor:
    """The distance of each whole episode from each archived policy [E, J].

    Args:
        measure: the distance.
        played: episodes of which all states were kept.
    """
    episode, step = played.columns["episode"], played.columns["step"]
    rewards = measure.reward(played.columns["states"])
    if measure.final_only:
        last = step == played.lengths[episode] - 1
        rewards = torch.where(last.unsqueeze(-1), rewards, 0)
    totals = rewards.new_zeros(len(played.lengths), rewards.shape[-1])
    return measure.distance(totals.index_add_(0, episode, rewards), played.lengths.unsqueeze(-1))


def bootstrap(first: Tensor, second: Tensor, *, seed: int) -> tuple[float, float]:
    """What 95 % of resamplings say about the mean of two samples' means.

    Args:
        first: figures of some episodes [E].
        second: those of others.
        seed: decides the resampling.

    Example:
        >>> bootstrap(torch.ones(3), torch.full((5,), 3.0), seed=0)
        (2.0, 2.0)
    """
    generator = torch.Generator().manual_seed(seed)
    means = torch.zeros(BOOTSTRAPS)
    for sample in (first, second):
        rows = torch.randint(len(sample), (BOOTSTRAPS, len(sample)), generator=generator)
        means += sample[rows].mean(dim=1) / 2
    low, high = means.quantile(torch.tensor([0.025, 0.975])).tolist()
    return low, high


def _play(config: ITRConfig, archive: Archive, index: int, episodes: int) -> Evaluation:
    """Whole sampled episodes of an archived policy."""
    policy = archive[index].load_policy()
    with torch.random.fork_rng():
        torch.manual_seed(derive_seed(config.seed, "calibration", index))
        return evaluate(
            remembering(config.env.make(episodes, seed=config.seed), policy),
            policy,
            Watch([], {}),
            horizon=config.env.horizon,
            exploration="sample",
        )


def _learned(
    config: ITRConfig, measure: MeasureConfig, archive: Archive, played: Evaluation
) -> StateDistanceMeasure:
    """The measure, which has learned to tell these episodes from the archive if it learns."""
    with torch.random.fork_rng():
        torch.manual_seed(derive_seed(config.seed, "critics"))
        made = measure.make(archive, horizon=config.env.horizon)
    teach(made, played.columns["states"])
    return made


def _check_scales(size: float, best: float, similar: bool) -> None:
    if size < 1e-12:  # rounding errors are smaller
        found = "have nothing in common" if similar else "cannot be told apart"
        raise RunError(
            f"The two policies {found} under this measure ({size:.2g}), so there is nothing to "
            "take the threshold from: try another seed, or other settings of the measure."
        )
    if best == 0:
        raise RunError(
            "Neither policy earned anything, so there is nothing to take alpha from: give them "
            "more budget.frames."
        )


def _round(value: float) -> float:
    """Four digits: more would only pretend."""
    return float(f"{value:.4g}")
