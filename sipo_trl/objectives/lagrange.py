"""Lagrange multipliers: one per archived policy, moved by gradient ascent."""

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn

Sense = Literal["at_least", "at_most"]


class LagrangeMultipliers(nn.Module):
    r"""The multipliers :math:`\lambda_j` of the distance constraints, and their dual step.

    With ``sense="at_least"`` the constraints read :math:`D_j \ge \delta_j` and one dual step is
    :math:`\lambda_j \leftarrow \mathrm{clip}(\lambda_j + \eta(\delta_j - D_j), 0, \lambda_{max})`
    (SIPO, algorithm 1); with ``"at_most"`` both the step and the sign in :meth:`combine` turn
    round. Everything is a buffer: it follows the module's device, is saved with its ``state_dict``
    and never read by the host.

    Args:
        n: number of constraints J, one per archived policy; 0 is fine.
        threshold: the bound :math:`\delta`, one for all or one per constraint [J].

    Keyword Args:
        lr: step size :math:`\eta` of the ascent. Larger reacts sooner and swings more;
            usual values are 0.1 to 0.5.
        maximum: upper bound :math:`\lambda_{max}`, the most that a constraint may weigh against
            the task.
        warmup: number of updates during which the multipliers stay where they are, so that a
            policy first learns to move at all.
        initial: value at the start. The paper starts at 0; a positive value keeps a new policy
            away from old solutions before it has been drawn into one.
        fixed: if ``True``, :meth:`update` changes nothing (the ablation "fix-L").
        sense: whether a distance must be at least or at most its threshold.

    Examples:
        >>> multipliers = LagrangeMultipliers(2, threshold=0.4, lr=0.5)
        >>> multipliers.update(torch.tensor([0.1, 0.9]))
        tensor([0.1500, 0.0000])
        >>> advantages = torch.tensor([[1.0, 2.0, 3.0]])  # the task, then one per constraint
        >>> multipliers.combine(advantages, scale=10.0)
        tensor([[4.]])
    """

    value: Tensor
    threshold: Tensor
    updates: Tensor

    def __init__(
        self,
        n: int,
        threshold: float | Sequence[float] | Tensor,
        *,
        lr: float = 0.1,
        maximum: float = 10.0,
        warmup: int = 0,
        initial: float = 0.0,
        fixed: bool = False,
        sense: Sense = "at_least",
    ) -> None:
        super().__init__()
        if n < 0:
            raise ValueError(f"n is the number of constraints and cannot be negative, got {n}.")
        if lr <= 0 or maximum <= 0 or warmup < 0:
            raise ValueError(
                "lr and maximum must be positive and warmup at least 0, got "
                f"lr={lr}, maximum={maximum}, warmup={warmup}."
            )
        if not 0 <= initial <= maximum:
            raise ValueError(f"initial must lie between 0 and maximum={maximum}, got {initial}.")
        if sense not in ("at_least", "at_most"):
            raise ValueError(f"sense must be 'at_least' or 'at_most', got {sense!r}.")
        threshold = torch.as_tensor(threshold, dtype=torch.get_default_dtype())
        if threshold.ndim > 1 or (threshold.ndim == 1 and len(threshold) != n):
            raise ValueError(
                f"threshold must be one number or one per constraint [{n}], "
                f"got shape {list(threshold.shape)}."
            )
        self.lr, self.maximum, self.warmup = lr, maximum, warmup
        self.fixed, self.sense = fixed, sense
        self.register_buffer("threshold", threshold.expand(n).clone())
        self.register_buffer("value", torch.full_like(self.threshold, initial))
        self.register_buffer("updates", torch.zeros((), dtype=torch.int64))

    @property
    def sign(self) -> int:
        """+1 where a larger distance helps the constraint, -1 where it hurts."""
        return 1 if self.sense == "at_least" else -1

    @torch.no_grad()
    def update(self, distances: Tensor) -> Tensor:
        """Takes one dual step and returns the new multipliers [J].

        Args:
            distances: raw, unnormalised distances :math:`D_j` [J] of the current policy. A
                non-finite one (no episode finished, so nothing is known) leaves its multiplier
                alone.
        """
        if distances.shape != self.value.shape:
            raise ValueError(
                f"Expected one distance per multiplier {list(self.value.shape)}, "
                f"got {list(distances.shape)}."
            )
        self.updates += 1
        if not self.fixed:
            violation = self.sign * (self.threshold - distances)
            stepped = (self.value + self.lr * violation).clamp(0, self.maximum)
            moves = distances.isfinite() & (self.updates > self.warmup)
            self.value.copy_(torch.where(moves, stepped, self.value))
        return self.value.clone()

    def combine(self, advantages: Tensor, scale: float | Tensor = 1.0) -> Tensor:
        """Scalarises per-head advantages: ``A_0 + scale * sum_j lambda_j A_j`` (SIPO, eq. 5).

        Args:
            advantages: [*, 1 + J], the task's first.
            scale: the paper's alpha, which brings intrinsic returns to the size of the task's.

        Returns:
            The combined advantage [*, 1].
        """
        if advantages.shape[-1] != 1 + len(self.value):
            raise ValueError(
                f"Expected advantages with 1 + {len(self.value)} heads in the last dimension, "
                f"got shape {list(advantages.shape)}."
            )
        intrinsic = advantages[..., 1:] @ (self.sign * self.value).to(advantages.dtype)
        return (advantages[..., 0] + scale * intrinsic).unsqueeze(-1)

    def satisfied(self, distances: Tensor, tolerance: float = 0.0) -> Tensor:
        """Tells for each constraint whether it holds, up to ``tolerance`` [J], bool."""
        return self.sign * (distances - self.threshold) >= -tolerance

    def extra_repr(self) -> str:
        """Settings, for ``print``."""
        return (
            f"n={len(self.value)}, lr={self.lr}, maximum={self.maximum}, "
            f"warmup={self.warmup}, fixed={self.fixed}, sense={self.sense!r}"
        )
