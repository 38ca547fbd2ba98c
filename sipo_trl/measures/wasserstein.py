"""The Wasserstein measure."""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import torch
from tensordict import TensorDict, TensorDictBase
from torch import Tensor

from sipo_trl.measures.critics import ImageCritics, VectorCritics
from sipo_trl.measures.normalization import StateNormalizer
from sipo_trl.measures.reference import ReferenceMeasure, References

# RMSprop's constants, as in torch.optim.
_DECAY = 0.99
_EPSILON = 1e-8

_GOLDEN_RATIO = (math.sqrt(5) - 1) / 2


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
        hidden: Sequence[int] | None = None,
        lr: float = 4e-4,
        clip: float = 0.01,
        normalize: bool = True,
        batch_size: int = 4096,
        saturation: float | None = None,
    ) -> None:
        super().__init__(references, horizon=horizon)
        if saturation is not None and saturation <= 0:
            raise ValueError(
                f"saturation is {saturation}: give a positive distance, or None for none."
            )
        self.saturation = saturation
        self.lr = lr
        self.clip = clip
        self.batch_size = batch_size
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
        self._refresh_reference_mean()

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
        self.critics.zero_grad()
        distance = self._ascend(flat, offset)
        self._step()
        self.updates += 1
        self._refresh_reference_mean()
        return TensorDict(distance=distance, loss=-distance.sum())

    def _distances(self, states: Tensor) -> Tensor:
        scores = [self.critics(self._prepare(some)[None]) for some in states.split(self._rows)]
        distances = (torch.cat(scores, dim=1) - self.reference_mean.unsqueeze(1)).t()
        return distances if self.saturation is None else distances.clamp(max=self.saturation)

    @torch.enable_grad()
    def _ascend(self, states: Tensor, offset: Tensor) -> Tensor:
        """Add the gradient of the mean differences of scores, which are returned, [J]."""
        differences = torch.zeros_like(self.reference_mean)
        theirs = ((some, -weights) for some, weights in self._pieces(self.references, offset))
        pieces = chain(self._pieces([states], offset), theirs)
        for some, weights in _joined(pieces, self._rows):
            total = self.critics.total(some, weights)
            total.sum().backward()
            differences += total.detach()
        return differences

    @torch.no_grad()
    def _step(self) -> None:
        """Follow the accumulated gradient, which is that of an ascent, by RMSprop; then clip."""
        for index, parameter in enumerate(self.critics.parameters()):
            gradient, average = parameter.grad, self.get_buffer(f"square_average_{index}")
            assert gradient is not None
            average.mul_(_DECAY).addcmul_(gradient, gradient, value=1 - _DECAY)
            parameter.addcdiv_(gradient, average.sqrt().add_(_EPSILON), value=self.lr)
            parameter.clamp_(-self.clip, self.clip)

    @torch.no_grad()
    def _refresh_reference_mean(self) -> None:
        pieces = self._pieces(self.references, torch.zeros_like(self.updates))
        totals = [self.critics.total(states, weights) for states, weights in pieces]
        self.reference_mean.copy_(torch.stack(totals).sum(dim=0))

    def _pieces(self, sources: Sequence[Tensor], offset: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield evenly spaced states of each source with their weights, which sum up to 1.

        The pieces [J, n, *F] and [J, n] are small enough for their activations to stay in cache.
        Sources have one length there: short ones are filled up with states of weight 0.
        """
        index, weights = _spaced([len(source) for source in sources], self.batch_size, offset)
        for columns, some_weights in zip(
            index.split(self._rows, dim=1), weights.split(self._rows, dim=1), strict=True
        ):
            # Entries lie in files of their own, so each is read by itself.
            states = [source[rows] for source, rows in zip(sources, columns, strict=True)]
            yield self._prepare(torch.stack(states)), some_weights.to(self.reference_mean.dtype)

    def _prepare(self, states: Tensor) -> Tensor:
        return self.normalizer(states).to(self.reference_mean.dtype)

    @property
    def _rows(self) -> int:
        """How many states to score at once: on the CPU by its cache, elsewhere by memory."""
        elements = 2**20 if self.updates.device.type == "cpu" else 2**25
        return max(1, elements // self.critics.width)


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
