"""The Wasserstein measure."""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Literal, get_args

import torch
from tensordict import TensorDict, TensorDictBase
from torch import Tensor

from sipo_trl.measures.base import MeanOver
from sipo_trl.measures.critics import ImageCritics, VectorCritics, faster_alone
from sipo_trl.measures.normalization import StateNormalizer
from sipo_trl.measures.reference import ReferenceMeasure, References
from sipo_trl.processor import computes_bfloat16

# RMSprop's constants, as in torch.optim.
_DECAY = 0.99
_EPSILON = 1e-8

# From so many states on, what critics may gain by running one by one is more than the calls cost.
_ENOUGH_ALONE = 256

_GOLDEN_RATIO = (math.sqrt(5) - 1) / 2

Precision = Literal["float32", "bfloat16", "auto"]


class WassersteinMeasure(ReferenceMeasure):
    r"""Learned score that tells a policy's states from those of each archived policy.

    In the reward :math:`r_j(s) = \frac{1}{H} [f_j(s) - \mathbb{E}_{s' \in \chi_j} f_j(s')]` each
    :math:`f_j` is a critic, trained by ascent on the mean of that difference. Its parameters are
    clipped, so that it is Lipschitz and the mean approximates a multiple of the Wasserstein
    distance (its dual form). Vectors [F] are scored by a multilayer perceptron, images
    [C, height, width] by a convolutional network. All critics are one batched network, and one
    :meth:`update` is one RMSprop step of them all.

    One update looks at up to ``batch_size`` evenly spaced states of each entry; the next one at
    those beside them, until all have been seen. The mean over an entry is that over ``batch_size``
    evenly spaced states, always the same. No random numbers are involved.

    Args:
        references: an archive, or one tensor [n_j, *F] per archived policy; may be empty.
        horizon: the environment's horizon H.
        mean_over: the whole ``"horizon"``, or the ``"steps"`` that an episode had; see
            :class:`~sipo_trl.measures.StateDistanceMeasure`.
        hidden: sizes of the hidden layers; by default the paper's, (256, 256), or (256,) after the
            convolutions.
        lr: step size of the ascent.
        clip: largest absolute parameter. It sets the unit of the distances: a network of n layers
            scales with its n-th power.
        normalize: whether states are normalised by the first entry's statistics (see
            :class:`~sipo_trl.measures.StateNormalizer`); integer images are scaled to 0 to 1.
        batch_size: the most states of the given batch and of each entry that one update looks at.
            An update's time is proportional to it: images want fewer, such as 64.
        saturation: the difference of scores from which on a state is simply different: more of it
            pays no more. A critic's score knows no bound, and without one a body that falls down in
            a way that nobody else does is further from a runner than any other runner.
        precision: what the products of an update are computed in. ``"bfloat16"`` takes about half
            the time where there are instructions for it (a GPU, AVX-512-BF16, AMX), and there
            ``"auto"`` chooses it; elsewhere that is ``"float32"``. Parameters and rewards keep the
            measure's own dtype. So does everything with images, whose critics learn something else
            in bfloat16, and in float64, after ``double()``. Where states are much farther from
            zero than from each other, which ``normalize`` avoids, choose ``"float32"``.

    Example:
        >>> measure = WassersteinMeasure([torch.zeros(30, 1), torch.ones(50, 1)], normalize=False)
        >>> for _ in range(100):
        ...     metrics = measure.update(torch.full((20, 1), 4.0))
        >>> far, near = metrics["distance"]
        >>> bool(far > near)
        True
        >>> measure.reward(torch.zeros(5, 7, 1)).shape
        torch.Size([5, 7, 2])
    """

    updates: Tensor
    reference_mean: Tensor

    def __init__(
        self,
        references: References,
        *,
        horizon: int = 1,
        mean_over: MeanOver = "horizon",
        hidden: Sequence[int] | None = None,
        lr: float = 4e-4,
        clip: float = 0.01,
        normalize: bool = True,
        batch_size: int = 4096,
        saturation: float | None = None,
        precision: Precision = "auto",
    ) -> None:
        super().__init__(references, horizon=horizon, mean_over=mean_over)
        if precision not in get_args(Precision):
            choices = ", ".join(get_args(Precision))
            raise ValueError(f"precision is {precision!r}: choose one of {choices}.")
        if saturation is not None and saturation <= 0:
            raise ValueError(
                f"saturation is {saturation}: give a positive distance, or None for none."
            )
        self.saturation = saturation
        self.lr = lr
        self.clip = clip
        self.batch_size = batch_size
        self.precision = precision
        self.register_buffer("updates", torch.zeros((), dtype=torch.int64))
        self.register_buffer("reference_mean", torch.zeros(self.num_references))
        if self.state_shape is None:
            return
        self.normalizer = (
            StateNormalizer.from_references(references) if normalize else StateNormalizer.identity()
        )
        self.critics = _make_critics(self.num_references, self.state_shape, hidden, clip)
        # RMSprop's state is made of buffers, which follow the device and the state_dict; that of
        # torch.optim.RMSprop would do neither.
        for index, parameter in enumerate(self.critics.parameters()):
            self.register_buffer(f"square_average_{index}", torch.zeros_like(parameter))
        self.to(self.references[0].device)
        _keep_freed_memory()
        self._refresh_reference_mean()

    @property
    def product_dtype(self) -> torch.dtype:
        """What the products of an update are computed in, as ``precision`` and the device say."""
        own = self.reference_mean.dtype
        if own != torch.float32 or len(self.state_shape or ()) != 1:
            return own
        native = self.precision == "auto" and computes_bfloat16(self.updates.device.type)
        return torch.bfloat16 if native or self.precision == "bfloat16" else own

    def update(self, states: Tensor) -> TensorDictBase:
        """Make one ascent step for all critics.

        Args:
            states: states [*, *F] of the current policy.

        Returns:
            ``distance`` [J], each critic's mean difference of scores before the step, without the
            factor 1/H; and ``loss`` [], minus their sum.
        """
        if self.state_shape is None:
            return super().update(states)
        flat = self._flatten(states.detach(), self.state_shape)
        # The fractions of multiples of the golden ratio fill the unit interval evenly.
        offset = (self.updates.double() * _GOLDEN_RATIO) % 1
        distance = self._ascend(flat, offset)
        self._step()
        self.updates += 1
        self._refresh_reference_mean()
        return TensorDict(distance=distance, loss=-distance.sum())

    def _distances(self, states: Tensor) -> Tensor:
        rows = self._rows(self.num_references, self.reference_mean.dtype)
        scores = [self.critics(self._prepare(some)[None]) for some in states.split(rows)]
        distances = (torch.cat(scores, dim=1) - self.reference_mean.unsqueeze(1)).t()
        return distances if self.saturation is None else distances.clamp(max=self.saturation)

    def _ascend(self, states: Tensor, offset: Tensor) -> Tensor:
        """Find the gradient of the mean differences of scores, which are returned, [J]."""
        dtype, references = self.product_dtype, self.references
        our_index, our_weights = self._select([states], offset, dtype)
        index, weights = self._select(references, offset, dtype)
        groups, rows = self._groups(our_index.shape[1] + index.shape[1], dtype)
        distances = []
        for group in groups:
            ours = self._pieces([states], our_index, our_weights, rows)
            theirs = self._pieces(references[group], index[group], -weights[group], rows)
            pieces = _joined(chain(ours, theirs), rows)
            distances.append(self.critics.differentiate(pieces, group, dtype))
        return torch.cat(distances)

    @torch.no_grad()
    def _step(self) -> None:
        """Follow the gradient, which is that of an ascent, by RMSprop; then clip."""
        parameters: list[Tensor] = list(self.critics.parameters())
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        averages = [self.get_buffer(f"square_average_{i}") for i in range(len(parameters))]
        # RMSprop is Adam whose first moment is the gradient and which has made many steps, and of
        # Adam there is a version that reads and writes everything only once.
        steps = [torch.full((), math.inf, device=self.updates.device)] * len(parameters)
        torch._fused_adam_(
            parameters,
            gradients,
            gradients,
            averages,
            [],
            steps,
            lr=self.lr,
            beta1=0.0,
            beta2=_DECAY,
            weight_decay=0.0,
            eps=_EPSILON,
            amsgrad=False,
            maximize=True,
        )
        for parameter in parameters:
            parameter.clamp_(-self.clip, self.clip)

    @torch.no_grad()
    def _refresh_reference_mean(self) -> None:
        dtype, references = self.reference_mean.dtype, self.references
        index, weights = self._select(references, torch.zeros_like(self.updates), dtype)
        groups, rows = self._groups(index.shape[1], dtype)
        for group in groups:
            pieces = self._pieces(references[group], index[group], weights[group], rows)
            totals = [self.critics.total(*piece, group) for piece in pieces]
            self.reference_mean[group] = torch.stack(totals).sum(dim=0)

    def _select(
        self, sources: Sequence[Tensor], offset: Tensor, dtype: torch.dtype
    ) -> tuple[Tensor, Tensor]:
        """Return indices and weights [J, n] of evenly spaced states of each source.

        Sources have one length there: short ones are filled up with states of weight 0. The weights
        of each sum up to 1.
        """
        index, weights = _spaced([len(source) for source in sources], self.batch_size, offset)
        return index, _rounded(weights, dtype)

    def _pieces(
        self, sources: Sequence[Tensor], index: Tensor, weights: Tensor, rows: int
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the chosen states [J, n, *F] of each source, up to ``rows``, and their weights."""
        for columns, some in zip(index.split(rows, dim=1), weights.split(rows, dim=1), strict=True):
            # Entries lie in files of their own, so each is read by itself.
            states = [
                source.index_select(0, column)
                for source, column in zip(sources, columns, strict=True)
            ]
            yield self._prepare(torch.stack(states)), some

    def _prepare(self, states: Tensor) -> Tensor:
        return self.normalizer(states).to(self.reference_mean.dtype)

    def _groups(self, count: int, dtype: torch.dtype) -> tuple[list[slice], int]:
        """Choose critics to run together, and how many of ``count`` states to run them on at once.

        Few critics that see all states are faster than all critics that see a few each: with each
        piece, their parameters and gradients are read and written.
        """
        most = max(1, self._rows(1, dtype) // count)
        if count >= _ENOUGH_ALONE and faster_alone(dtype, self.updates.device):
            most = 1
        size = math.ceil(self.num_references / math.ceil(self.num_references / most))
        starts = range(0, self.num_references, size)
        return [slice(start, start + size) for start in starts], self._rows(size, dtype)

    def _rows(self, critics: int, dtype: torch.dtype) -> int:
        """How many states to score at once: on the CPU by its cache, elsewhere by memory."""
        size = 2**21 if self.updates.device.type == "cpu" else 2**27
        row = dtype.itemsize * critics * self.critics.width // self.num_references
        return max(1, size // row)


def _make_critics(
    num_critics: int, shape: torch.Size, hidden: Sequence[int] | None, clip: float
) -> VectorCritics:
    if len(shape) == 1:
        return VectorCritics(num_critics, shape[0], hidden=hidden or (256, 256), bound=clip)
    if len(shape) == 3:
        return ImageCritics(num_critics, shape, hidden=hidden or (256,), bound=clip)
    raise ValueError(
        f"The references' states have the shape {list(shape)}, but critics need vectors [F] or "
        "images [C, height, width]: flatten or reshape the states."
    )


def _keep_freed_memory() -> None:
    """Let the C library keep freed memory for the next update: new memory is slow to touch.

    glibc gives memory back to the system once twice the largest block of up to 32 MB that was ever
    freed is free. So one such block, which is never touched, makes it keep 64 MB.
    """
    torch.empty(2**25 - 2**16, dtype=torch.uint8, device="cpu")


def _joined(pieces: Iterable[tuple[Tensor, Tensor]], most: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Join neighbouring pieces of up to ``most`` states: few large products are faster."""
    pieces = iter(pieces)
    held = next(pieces)
    for piece in pieces:
        if held[0].shape[1] + piece[0].shape[1] > most:
            yield held
            held = piece
        else:
            critics = max(len(held[0]), len(piece[0]))
            states, weights = (
                torch.cat([part.expand(critics, *part.shape[1:]) for part in parts], dim=1)
                for parts in zip(held, piece, strict=True)
            )
            held = states, weights
    yield held


def _spaced(lengths: Sequence[int], most: int, offset: Tensor) -> tuple[Tensor, Tensor]:
    """Return the indices and weights [J, n] of evenly spaced rows of J tables, ``most`` of each.

    ``offset``, within [0, 1), shifts them by that part of their spacing.
    """
    length = torch.tensor(lengths, dtype=torch.float64, device=offset.device).unsqueeze(1)
    picked = length.clamp(max=most)
    count = torch.arange(min(most, max(lengths)), device=offset.device)
    index = ((count + offset) * length / picked).minimum(length - 1)
    return index.long(), (count < picked) / picked


def _rounded(weights: Tensor, dtype: torch.dtype) -> Tensor:
    """Round weights [J, n], but not their sums.

    Rounded one by one to bfloat16, the weights 1/n of a mean would all be too large or too small
    alike, and two means with much in common would differ by that.
    """
    if dtype != torch.bfloat16:
        return weights.to(dtype)
    # In units of the last of bfloat16's eight digits. What is cut off one goes to the next.
    mantissa, exponent = torch.frexp(weights)
    sums = (mantissa * 2**8).cumsum(dim=1).round()
    steps = sums.diff(dim=1, prepend=torch.zeros_like(sums[:, :1]))
    return torch.ldexp(steps, exponent - 8).to(dtype)
