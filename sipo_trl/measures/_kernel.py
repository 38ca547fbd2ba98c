"""Mean kernel values, fast and in flat memory."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from sipo_trl.processor import prefers_onednn

# The CPU's exp2 is many times slower where its result is denormal, below about -87 * log2(e).
_LEAST_EXPONENT = -80.0
_LOG2_E = 1.4426950408889634

# What exponents, in base 2, are kept within.
_LIMITS = [_LEAST_EXPONENT * _LOG2_E, 0.0]

# Elements of a centred block of states: bounds memory where states are large.
_BLOCK = 2**20


@torch.library.custom_op("sipo_trl::kernel_mean", mutates_args=())
def kernel_mean(
    states: Tensor, references: Tensor, centre: Tensor, scale: Tensor, double: bool
) -> Tensor:
    r"""Return the mean over references of :math:`2^{-\|z(s) - z(s')\|^2 / 2}`.

    Here :math:`z(s) = (s - \text{centre}) \cdot \text{scale}`. It is an operator of its own so that
    a compiled graph has one node for it and not one per tile.

    Args:
        states: [N, F].
        references: [n, F].
        centre: a point [F] near the references; it serves accuracy only.
        scale: factors [F].
        double: whether to compute in float64.

    Returns:
        The means [N], in float32 or float64.

    Example:
        >>> state, references = torch.zeros(1, 1), torch.tensor([[1.0], [-1.0]])
        >>> kernel_mean(state, references, torch.zeros(1), torch.full([1], 2.0), False)
        tensor([0.2500])
    """
    dtype = torch.float64 if double else torch.float32
    # On the CPU a tile has to stay in the cache of its core from the product to the sum; 1024 x 512
    # was measured to be best from 3 to 144 features. Elsewhere it only has to keep the device busy.
    rows, elements = (1024, 2**19) if states.device.type == "cpu" else (4096, 2**22)
    rows = max(1, min(rows, len(states)))
    block = max(1, _BLOCK // (states.shape[1] + 2))
    totals = states.new_zeros(len(states), dtype=dtype)
    packs = states.device.type == "cpu" and not double and prefers_onednn()
    tile = states.new_empty(0 if packs else elements, dtype=dtype)
    for some_states, some_totals in zip(states.split(block), totals.split(block), strict=True):
        left = _left_factor(some_states, centre, scale, dtype)
        for some_references in references.split(min(block, elements // rows)):
            right = _right_factor(some_references, centre, scale, dtype)
            exponents = _packed_product(right, rows) if packs else _product(right, tile)
            for factor, total in zip(left.split(rows), some_totals.split(rows), strict=True):
                # Twice as fast as exp on the CPU.
                total += exponents(factor).exp2_().sum(dim=1)
    return totals / len(references)


@kernel_mean.register_fake
def _(states: Tensor, references: Tensor, centre: Tensor, scale: Tensor, double: bool) -> Tensor:
    return states.new_empty(len(states), dtype=torch.float64 if double else torch.float32)


def _product(right: Tensor, tile: Tensor) -> Callable[[Tensor], Tensor]:
    """Return what multiplies a left factor [m, F + 2] by a right one [n, F + 2], within limits.

    The result [m, n] stands in the tile until the next call.
    """
    columns = right.t().contiguous()

    def exponents(left: Tensor) -> Tensor:
        shape = (len(left), columns.shape[1])
        into = tile[: math.prod(shape)].view(shape)
        return torch.mm(left, columns, out=into).clamp_(*_LIMITS)

    return exponents


def _packed_product(right: Tensor, rows: int) -> Callable[[Tensor], Tensor]:
    """Return the same through oneDNN, which packs the right factor once, for left ones of ``rows``.

    It puts the limits on what is still in registers. PyTorch's compiler replaces linear layers by
    these operators.
    """
    packed = torch.ops.mkldnn._reorder_linear_weight(right, rows)

    def exponents(left: Tensor) -> Tensor:
        return torch.ops.mkldnn._linear_pointwise(left, packed, None, "hardtanh", _LIMITS, "")

    return exponents


def kernel_error(references: Tensor, centre: Tensor, scale: Tensor) -> float:
    r"""Bound the relative error of :func:`kernel_mean` in float32.

    An exponent is :math:`z \cdot z' - \|z\|^2/2 - \|z'\|^2/2`, in natural units; its absolute error
    is the relative one of the kernel. References have :math:`\|z'\| \le R`. A state counts only if
    an exponent of it may exceed -80, hence if :math:`\|z\| \le R + \sqrt{160}`: farther ones give
    zero whatever the error. So the terms add up to at most :math:`S = (2R + \sqrt{160})^2 / 2` in
    size, and rounding them costs :math:`\epsilon S / 2`, which for large R is :math:`\epsilon
    \max \|x - \mu\|^2 / \sigma^2`. Besides, the F partial sums of the product, which grow up to
    S/2, are rounded one by one: like a random walk, this adds :math:`\epsilon S \sqrt{F} / 12` on
    average and hardly ever more than three times that. The bound is the sum of both.

    Args:
        references: [n, F].
        centre: [F], as in :func:`kernel_mean`.
        scale: [F], as in :func:`kernel_mean`.

    Example:
        >>> kernel_error(torch.tensor([[1.0], [3.0]]), torch.tensor([2.0]), torch.ones(1)) < 1e-5
        True
    """
    block = max(1, _BLOCK // references.shape[1])
    largest = torch.zeros((), device=references.device)
    for some in references.split(block):
        norms = _centred(some, centre, scale, torch.float32).norm(dim=1)
        # In place: a new number above each freed block would keep glibc from using it again.
        largest.copy_(torch.maximum(largest, norms.max()))
    radius = largest.item() / _LOG2_E**0.5
    terms = (2 * radius + (-2 * _LEAST_EXPONENT) ** 0.5) ** 2 / 2
    roundings = 1 / 2 + references.shape[1] ** 0.5 / 4
    return torch.finfo(torch.float32).eps * terms * roundings


def _left_factor(states: Tensor, centre: Tensor, scale: Tensor, dtype: torch.dtype) -> Tensor:
    """Return rows (z, -|z|^2/2, 1), whose product with the right factor is the whole exponent."""
    points = _centred(states, centre, scale, dtype)
    half_norms = points.square().sum(dim=1, keepdim=True) / -2
    return torch.cat([points, half_norms, torch.ones_like(half_norms)], dim=1)


def _right_factor(states: Tensor, centre: Tensor, scale: Tensor, dtype: torch.dtype) -> Tensor:
    """Return rows (z, 1, -|z|^2/2)."""
    points = _centred(states, centre, scale, dtype)
    half_norms = points.square().sum(dim=1, keepdim=True) / -2
    return torch.cat([points, torch.ones_like(half_norms), half_norms], dim=1)


def _centred(states: Tensor, centre: Tensor, scale: Tensor, dtype: torch.dtype) -> Tensor:
    # Before the offset is gone, precision must be the best at hand.
    precise = states.to(torch.promote_types(states.dtype, dtype))
    return ((precise - centre.to(precise)) * scale.to(precise)).to(dtype)
