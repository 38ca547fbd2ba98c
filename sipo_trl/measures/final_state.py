"""The final-state measure."""

import torch
from torch import Tensor

from sipo_trl.archive import Archive
from sipo_trl.measures.reference import ReferenceMeasure, References

# Elements of a table of distances: bounds memory.
_TABLE = 2**20


class FinalStateMeasure(ReferenceMeasure):
    r"""Mean L2 distance to the final states of each archived policy.

    The reward :math:`r_j(s) = \frac{1}{H} \mathbb{E}_{s' \in \chi_j} g(\|s - s'\|)` counts at the
    last step of an episode only (``final_only``); :meth:`reward` takes every state for a final one.
    States are compared as they are, in the units of :math:`\delta`.

    Args:
        references: an archive, whose entries have the columns ``step`` and ``episode``, or one
            tensor of final states [e_j, *F] per archived policy; may be empty.
        horizon: divides the reward, as in all measures. The final state comes once in an episode,
            so that 1, the default, makes the distance that of final states.
        saturation: the distance c from which on two states are simply different: the paper's cost
            :math:`g(d) = \min(d / c, 1)`. A policy that ends far away half the time and nowhere
            new otherwise then does not pass for different. ``None``: :math:`g(d) = d`.
        radius: the distance c below which two states are the same: the cost
            :math:`g(d) = -1[d < c]`. The distance is then minus the probability of ending where
            the archived policy ends, and the paper's :math:`\delta` the greatest that is allowed.
            Ending nowhere costs nothing, so a policy that found nothing new is not pushed about.

    Example:
        >>> measure = FinalStateMeasure([torch.tensor([[3.0, 4.0], [0.0, 0.0]])])
        >>> measure.reward(torch.zeros(1, 2))
        tensor([[2.5000]])
        >>> measure = FinalStateMeasure([torch.tensor([[3.0, 4.0], [0.0, 0.0]])], saturation=0.4)
        >>> measure.reward(torch.zeros(1, 2))
        tensor([[0.5000]])
    """

    final_only = True
    membership: Tensor

    def __init__(
        self,
        references: References,
        *,
        saturation: float | None = None,
        radius: float | None = None,
        horizon: int = 1,
    ) -> None:
        if isinstance(references, Archive):
            references = [entry.final_states for entry in references]
        super().__init__(references, horizon=horizon)
        if saturation is not None and saturation <= 0:
            raise ValueError(
                f"saturation is {saturation}: give a positive distance, or None for none."
            )
        if radius is not None and (radius <= 0 or saturation is not None):
            raise ValueError(
                f"radius is {radius}: give a positive distance, and no saturation beside it."
            )
        self.saturation, self.radius = saturation, radius
        # Column j marks the rows of entry j.
        marks = [states.new_ones(len(states), 1, dtype=torch.float32) for states in self.references]
        self.register_buffer("membership", torch.block_diag(*marks))

    def threshold(self, delta: float) -> float:
        """Return the bound on the distance; with a radius, delta is a similarity."""
        return delta if self.radius is None else -delta

    def _distances(self, states: Tensor) -> Tensor:
        dtype = states.dtype if states.is_floating_point() else torch.float32
        final_states = torch.cat(self.references).flatten(1).to(dtype)
        membership = self.membership.to(dtype)
        totals = [
            self._cost(some, final_states) @ membership
            for some in states.flatten(1).to(dtype).split(max(1, _TABLE // len(final_states)))
        ]
        return torch.cat(totals) / membership.sum(dim=0)

    def _cost(self, states: Tensor, final_states: Tensor) -> Tensor:
        # Through a matrix product, distances would lose half of their digits.
        distances = torch.cdist(states, final_states, compute_mode="donot_use_mm_for_euclid_dist")
        if self.radius is not None:
            return (distances < self.radius).to(distances.dtype).neg()
        return distances if self.saturation is None else (distances / self.saturation).clamp(max=1)
