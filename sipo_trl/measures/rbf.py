"""The RBF-kernel measure."""

import math

import torch
from torch import Tensor

from sipo_trl.measures._grid import KernelGrid
from sipo_trl.measures._kernel import kernel_error, kernel_mean
from sipo_trl.measures.base import MeanOver
from sipo_trl.measures.normalization import StateNormalizer, mean_and_std
from sipo_trl.measures.reference import ReferenceMeasure, References

# Where the bound on float32's relative error passes this, an entry is computed in float64.
_LARGEST_ERROR = 1e-3


class RBFMeasure(ReferenceMeasure):
    r"""Minus the mean kernel value between a state and the states of each archived policy.

    The reward :math:`r_j(s) = -\frac{1}{H} \mathbb{E}_{s' \in \chi_j} \exp(-\|s - s'\|^2 /
    2\sigma^2)` lies in :math:`[-1/H, 0]`. The paper's :math:`\delta` is the greatest allowed
    similarity: the constraint is :math:`D_j \ge -\delta`.

    States with two features take a grid (:class:`~sipo_trl.measures._grid.KernelGrid`), whose cost
    does not grow with the number of references. Otherwise the work is done in tiles, so that no
    more than a few megabytes are needed beside the references, however many there are; it assumes
    PyTorch's default float32 matmul precision.

    Args:
        references: an archive, or one tensor [n_j, *F] per archived policy; may be empty.
        variance: the kernel's :math:`\sigma^2`. Smaller notices finer differences, but soon takes
            all states for equally far; the paper sweeps 1e-3 to 1e-1.
        horizon: the environment's horizon H.
        mean_over: the whole ``"horizon"``, or the ``"steps"`` that an episode had; see
            :class:`~sipo_trl.measures.StateDistanceMeasure`.
        normalize: whether features are scaled by the first entry's standard deviation (see
            :class:`~sipo_trl.measures.StateNormalizer`); the variance is in these units.
        per_dimension: whether squared distances are divided by the number of features, so that a
            variance suits states of any size.

    Example:
        >>> references = [torch.zeros(3, 2), torch.ones(5, 2)]
        >>> measure = RBFMeasure(references, variance=0.5)
        >>> measure.reward(torch.tensor([[0.0, 0.0], [0.0, 2.0]]))
        tensor([[-1.0000, -0.3679],
                [-0.1353, -0.3679]])
        >>> measure.threshold(0.03)
        -0.03
    """

    centre: Tensor

    def __init__(
        self,
        references: References,
        *,
        variance: float = 0.02,
        horizon: int = 1,
        mean_over: MeanOver = "horizon",
        normalize: bool = True,
        per_dimension: bool = True,
    ) -> None:
        super().__init__(references, horizon=horizon, mean_over=mean_over)
        if variance <= 0:
            raise ValueError(f"variance is {variance}, but a kernel needs a positive one.")
        self.variance = variance
        self.per_dimension = per_dimension
        self.normalizer = (
            StateNormalizer.from_references(references)
            if normalize and self.num_references
            else StateNormalizer.identity()
        )
        # Each entry has its own centre: the nearer, the smaller the rounding error; and an entry's
        # column does not depend on other entries.
        centres = [mean_and_std(states)[0].flatten() for states in self.references]
        self.register_buffer("centre", torch.stack(centres) if centres else torch.empty(0))
        self.grid: KernelGrid | None = None
        self._prepare()
        self.register_load_state_dict_post_hook(RBFMeasure._prepare)

    def threshold(self, delta: float) -> float:
        """Return the bound on the distance: minus the greatest allowed similarity."""
        return -delta

    def _distances(self, states: Tensor) -> Tensor:
        flat, scale, precise = states.flatten(1), self._scale, states.dtype == torch.float64
        if self.grid is not None:
            return self.grid(self._scaled(flat)).neg()
        entries = zip(self.references, self.centre, self._double, strict=True)
        columns = [
            kernel_mean(flat, references.flatten(1), centre, scale, precise or double)
            for references, centre, double in entries
        ]
        return torch.stack(columns, dim=-1).neg()

    @property
    def _scale(self) -> Tensor:
        """The factors [F] after which a kernel's base-2 exponent is half a squared distance."""
        assert self.state_shape is not None
        features = math.prod(self.state_shape)
        variance = self.variance * (features if self.per_dimension else 1)
        scale = math.sqrt(math.log2(math.e) / variance) / self.normalizer.scale.double()
        return scale.expand(self.state_shape).flatten()

    def _scaled(self, states: Tensor) -> Tensor:
        """Bring states [n, F] to the kernel's units, around the first entry's centre."""
        return ((states - self.centre[0]) * self._scale).to(states.dtype)

    @torch.no_grad()
    def _prepare(self, *_: object) -> None:
        """Make a grid if one pays; else decide for each entry whether float32 will do.

        Without values (meta) neither can be known: tiles in float32 it is.
        """
        flat = [states.flatten(1) for states in self.references]
        known = bool(flat) and not flat[0].is_meta
        if known and flat[0].shape[1] == 2:
            self.grid = KernelGrid.fit([self._scaled(states) for states in flat])
        self._double = [
            not states.is_meta
            and kernel_error(states.flatten(1), centre, self._scale) > _LARGEST_ERROR
            for states, centre in zip(self.references, self.centre, strict=True)
        ]
