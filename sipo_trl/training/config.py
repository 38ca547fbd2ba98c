"""What can be set, as typed dataclasses behind the YAML files of ``conf/``.

Each field is explained by its effect. ``launch`` programs compose these with Hydra; in code they
are built by hand.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, cast, get_args

from omegaconf import MISSING
from torch import Tensor
from torchrl.envs import EnvBase

from sipo_trl.archive import Archive
from sipo_trl.envs.config import EnvConfig
from sipo_trl.measures import (
    FinalStateMeasure,
    MeanOver,
    RBFMeasure,
    SampledMeasure,
    StateDistanceMeasure,
    WassersteinMeasure,
)
from sipo_trl.measures.wasserstein import Precision
from sipo_trl.training.run_folder import RunError


@dataclass
class NetworkConfig:
    """Actor and critic, which do not share weights."""

    hidden: list[int] = field(default_factory=lambda: [64, 64])
    """Sizes of the hidden layers."""
    activation: str = "tanh"
    """tanh, relu or elu."""
    layer_norm: bool = False
    """Normalise inputs and hidden features, as MAPPO does."""
    observation_norm: bool = False
    """Normalise observations by the mean and deviation of all that were seen so far."""
    gru: int | None = None
    """Size of the recurrent layer; null for none."""
    distribution: str = "tanh_normal"
    """Continuous actions: tanh_normal stays within the bounds, normal is clipped by them."""
    initial_std: float = 1.0
    """Spread of continuous actions at the start, before squashing: more explores further."""

    def layers(self) -> dict[str, Any]:
        """The options that actor and critic share."""
        names = ("hidden", "activation", "layer_norm", "observation_norm", "gru")
        return {name: getattr(self, name) for name in names}


PRECISIONS = ("float32", "bfloat16")


def _check_choice(name: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise ValueError(f"{name} is {value!r}: choose one of {', '.join(choices)}")


@dataclass
class PPOConfig:
    """One policy-gradient update; the defaults are the paper's common ones."""

    discount: float = 0.99
    gae_lambda: float = 0.95
    epochs: int = 10
    """Passes over each batch."""
    minibatches: int = 1
    """Gradient steps per pass."""
    clip: float = 0.2
    """How far the policy's probability ratio may move per update."""
    entropy: float = 0.01
    """Weight of the entropy bonus."""
    actor_lr: float = 5e-4
    critic_lr: float = 1e-3
    target_kl: float | None = None
    """Adapt both rates so that the policy moves by about this much per update; null: fixed."""
    max_grad_norm: float = 10.0
    huber_delta: float = 10.0
    """Where the critic's loss turns from squared to linear."""
    value_clip: float | None = 0.2
    """How far a value may move per update, in the critic's units; null for no limit."""
    value_norm: bool = True
    """Let the critic predict normalised values."""
    intrinsic_critic: float = 1.0
    """Weight of each distance's value head in the critic's loss, beside the task's: less leaves the
    layers that they share to the task."""
    normalize_advantage: str = "combined"
    """combined: the weighted sum; per_head: each head before it too; none."""
    advantage_floor: float = 1.0e-5
    """Smallest deviation that advantages are divided by: keeps noise small while reward is rare."""
    normalize_intrinsic: bool = False
    """Divide each intrinsic reward by its running deviation, for the gradient only."""
    chunk: int = 10
    """Length of the sequences that recurrent networks are trained on."""
    compile: bool = False
    """Compile the gradient, which takes a C++ compiler and some time before each policy's first
    update and makes each update faster: for long trainings."""
    parallel: bool = False
    """Let actor and critic learn at the same time, on two cores: a third less time for an update of
    large networks, and a tenth more work. Needs compile: other code would wait for the
    interpreter."""
    precision: str = "float32"
    """What matrix products are computed in: bfloat16 takes half the time where there are
    instructions for it (a GPU, AVX-512-BF16, AMX). Weights stay in float32."""

    def __post_init__(self) -> None:
        _check_choice("ppo.precision", self.precision, PRECISIONS)
        if self.parallel and not self.compile:
            raise ValueError("ppo.parallel is for compiled gradients: set ppo.compile=true, too")


@dataclass
class MeasureConfig(ABC):
    """What "different" means, and how much of it is wanted."""

    name: str = MISSING
    delta: float = MISSING
    """The paper's threshold: smallest distance, or greatest similarity with an RBF kernel."""
    alpha: float = 1.0
    """Size of intrinsic rewards beside the task's."""
    unit: float = 1.0
    """What distances are counted in by the dual step, so that one step size suits all measures."""
    mean_over: str = "horizon"
    """What distances are means over: horizon, as in the paper, or steps: those that an episode
    had, where it should pay neither to end it nor to prolong it."""

    def __post_init__(self) -> None:
        _check_choice("measure.mean_over", self.mean_over, get_args(MeanOver))

    @abstractmethod
    def make(self, references: Archive | Sequence[Tensor], *, horizon: int) -> StateDistanceMeasure:
        """The measure against the policies of an archive, or against their states."""


@dataclass
class RBFConfig(MeasureConfig):
    """Gaussian kernel between states."""

    name: str = "rbf"
    variance: float = 0.02
    """Width of the kernel, in normalised units."""
    normalize: bool = True
    """Bring features to comparable scales, fixed with the archive's first entry."""
    per_dimension: bool = True
    """Divide squared distances by the number of features."""

    def make(self, references: Archive | Sequence[Tensor], *, horizon: int) -> RBFMeasure:
        """The RBF measure."""
        return RBFMeasure(
            references,
            variance=self.variance,
            horizon=horizon,
            mean_over=cast("MeanOver", self.mean_over),
            normalize=self.normalize,
            per_dimension=self.per_dimension,
        )


@dataclass
class WassersteinConfig(MeasureConfig):
    """Learned critics that tell policies apart by their states."""

    name: str = "wd"
    lr: float = 4e-4
    """Step size of the critics."""
    clip: float = 0.01
    """Bound of the critics' weights, which bounds their slope."""
    normalize: bool = True
    """Bring features to comparable scales, fixed with the archive's first entry."""
    batch_size: int = 4096
    """The most states of each policy that one update looks at; images want few."""
    saturation: float | None = None
    """Distance of a state from which further away pays no more; null for none."""
    precision: str = "auto"
    """What the critics learn in: float32, bfloat16, or auto: the latter where it is fast. Rewards
    are in float32."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_choice("measure.precision", self.precision, get_args(Precision))

    def make(self, references: Archive | Sequence[Tensor], *, horizon: int) -> WassersteinMeasure:
        """The Wasserstein measure, with fresh critics."""
        return WassersteinMeasure(
            references,
            horizon=horizon,
            mean_over=cast("MeanOver", self.mean_over),
            lr=self.lr,
            clip=self.clip,
            normalize=self.normalize,
            batch_size=self.batch_size,
            saturation=self.saturation,
            precision=cast("Precision", self.precision),
        )


@dataclass
class FinalStateConfig(MeasureConfig):
    """Where episodes end."""

    name: str = "final_state"
    saturation: float | None = None
    """Distance from which further away counts no more; distances are then fractions of it."""
    radius: float | None = None
    """Distance below which two ends are the same; delta is then how often that may happen."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mean_over != "horizon":
            raise ValueError(
                f"measure.mean_over is {self.mean_over!r}, but an episode has one final state: "
                "leave it at horizon"
            )

    def make(self, references: Archive | Sequence[Tensor], *, horizon: int) -> FinalStateMeasure:
        """The final-state measure."""
        return FinalStateMeasure(references, saturation=self.saturation, radius=self.radius)


@dataclass
class MultiplierConfig:
    """The Lagrange multipliers, one per archived policy."""

    lr: float = 0.1
    """Step size of the dual ascent."""
    maximum: float = 10.0
    """The most that a constraint may weigh."""
    warmup: float = 0.0
    """Fraction of the updates during which they stay at their initial value."""
    initial: float = 0.0
    """Where they start."""
    fixed: bool = False
    """Never move them (the ablation fix-L)."""


@dataclass
class EntryConfig:
    """What a finished policy leaves in the archive."""

    episodes: int = 64
    """How many episodes are rolled out."""
    exploration: str = "mean"
    """mean: the most likely actions; sample: drawn ones."""
    max_states: int = 10_000
    """At most so many states are kept, evenly spread over the episodes."""


@dataclass
class AlgorithmConfig:
    """How one policy is made different from all earlier ones."""

    name: str = MISSING
    rewards: str = "heads"
    """heads: one value head per reward; summed: one head for the weighted sum; filter: the task on
    episodes that are far enough, distance on the others."""
    multiplier: MultiplierConfig = field(default_factory=MultiplierConfig)
    entry: EntryConfig = field(default_factory=EntryConfig)
    tries: int = 1
    """How often an iteration may start afresh, within its budget, when its result is no good;
    once where env.solved does not say what is good."""
    settle: int = 0
    """Stop a try once return and constraints have held for so many updates in a row, and
    take the best policy on the way if they never do; 0: always the last one."""


@dataclass
class CollectorConfig:
    """Where experience comes from."""

    num_envs: int = 64
    """Copies of the environment that step together."""
    frames_per_batch: int = 4096
    """Environment steps between two updates, over all copies."""
    decide_in_workers: bool = False
    """Let the worker processes of football run the policy, each for itself, which is faster."""
    compile: bool = False
    """Compile what is between the physics of a humanoid's steps, decisions included, which takes a
    C++ compiler and some time before each policy's first batch: for long trainings."""
    device: str = "cpu"

    def __post_init__(self) -> None:
        if self.num_envs < 1:
            raise ValueError(f"collector.num_envs is {self.num_envs}: give at least 1")
        if self.frames_per_batch % self.num_envs:
            raise ValueError(
                f"collector.frames_per_batch is {self.frames_per_batch}, which is no multiple of "
                f"collector.num_envs, {self.num_envs}: every copy makes the same number of steps"
            )


@dataclass
class BudgetConfig:
    """How much experience."""

    name: str = MISSING
    frames: int = MISSING
    """Environment steps per policy, tries included."""


@dataclass
class LoggerConfig:
    """Where curves go beside the run folder's own metrics.csv."""

    backend: str = "csv"
    """csv: nothing more; tensorboard, wandb or mlflow: there as well, through TorchRL."""
    options: dict[str, Any] = field(default_factory=dict)
    """Passed to TorchRL's logger."""


@dataclass
class ITRConfig:
    """All settings of iterative learning."""

    env: EnvConfig = MISSING
    measure: MeasureConfig = MISSING
    algorithm: AlgorithmConfig = MISSING
    collector: CollectorConfig = field(default_factory=CollectorConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    ppo: PPOConfig = field(default_factory=PPOConfig)
    budget: BudgetConfig = MISSING
    logger: LoggerConfig = field(default_factory=LoggerConfig)
    iterations: int = 4
    """How many policies the archive is to hold."""
    seed: int = 0
    """Decides everything."""

    def __post_init__(self) -> None:
        steps, chunk = self.collector.frames_per_batch // self.collector.num_envs, self.ppo.chunk
        if self.network.gru is not None and steps % chunk:
            raise ValueError(
                f"collector.frames_per_batch gives each of collector.num_envs copies {steps} "
                f"steps, which is no multiple of ppo.chunk, {chunk}: recurrent networks learn "
                "from whole chunks"
            )

    def make_env(self, num_envs: int | None = None) -> EnvBase:
        """The environment, or one sentence for what is missing or set wrong.

        Args:
            num_envs: number of copies to be judged in; if ``None``, those to learn in.
        """
        where: dict[str, Any] = {"seed": self.seed, "device": self.collector.device}
        try:
            if num_envs is None:
                return self.env.make_practice(self.collector.num_envs, **where)
            return self.env.make(num_envs, **where)
        except (ImportError, OSError, RuntimeError, ValueError) as error:
            raise RunError(str(error)) from error

    def make_measure(self, references: Archive | Sequence[Tensor]) -> StateDistanceMeasure:
        """The measure against earlier policies, of this environment's diversity states.

        Args:
            references: an archive, or what it would hold of each policy.
        """
        measure = self.measure.make(references, horizon=self.env.horizon)
        if self.env.views is None:
            return measure
        try:
            return SampledMeasure(measure, self.env.make_view(), samples=self.env.views)
        except RuntimeError as error:  # what is missing here was not a mistake in the settings
            raise RunError(str(error)) from error

    def as_dict(self) -> dict[str, Any]:
        """All settings as plain data."""
        return asdict(self)


MEASURES: dict[str, type[MeasureConfig]] = {
    config.name: config for config in (RBFConfig, WassersteinConfig, FinalStateConfig)
}
"""Measures by name."""
