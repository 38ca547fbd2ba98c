"""Measures of what is too costly to look at for every state."""

from collections.abc import Callable

import torch
from tensordict import TensorDictBase
from torch import Tensor

from sipo_trl.measures.base import StateDistanceMeasure


class SampledMeasure(StateDistanceMeasure):
    """Measures views of states, such as pictures, of which only an even sample is taken.

    States [*, F] are cut, in their order, into pieces of one length: those of a batch [B, T] are
    cut along time. The middle of each piece is viewed, and its reward stands for the whole piece.
    (In a gait this was measured to be closer than the reward of the viewed state that is most
    alike.) No random numbers are involved.

    Args:
        measure: the distance between views, with views as references.
        view: what turns states [n, *F] into views [n, *V].

    Keyword Args:
        samples: at most so many of the states given in one call are viewed. :meth:`update` looks
            at the views that :meth:`reward` took last, if it is given the same states.

    Example:
        >>> from sipo_trl.measures import WassersteinMeasure
        >>> pictures = [torch.zeros(5, 3, 16, 16, dtype=torch.uint8)]  # of an earlier policy
        >>> def view(states):  # as bright as the state says
        ...     return states.byte()[..., None, None].expand(-1, 3, 16, 16)
        >>> measure = SampledMeasure(WassersteinMeasure(pictures), view, samples=8)
        >>> measure.reward(torch.rand(4, 50, 1)).shape
        torch.Size([4, 50, 1])
    """

    def __init__(
        self, measure: StateDistanceMeasure, view: Callable[[Tensor], Tensor], *, samples: int
    ) -> None:
        super().__init__(
            measure.num_references, horizon=measure.horizon, mean_over=measure.mean_over
        )
        if samples < 1:
            raise ValueError(f"samples is {samples}: view at least 1 state at a time.")
        self.measure, self.samples = measure, samples
        self.sense, self.final_only = measure.sense, measure.final_only
        self._view = view
        # What was viewed last; it never decides a result, so that it is no state.
        self._seen: tuple[Tensor, Tensor] | None = None

    @torch.no_grad()
    def reward(self, states: Tensor, actions: Tensor | None = None) -> Tensor:
        """Compute the intrinsic rewards of states [*, F], without gradients, as [*, J]."""
        if self.num_references == 0:
            return states.new_zeros(*states.shape[:-1], 0)
        flat = states.reshape(-1, states.shape[-1])
        rewards = self.measure.reward(self._look(self._sample(flat)))
        held = rewards.repeat_interleave(self._stride(flat), dim=0)[: len(flat)]
        return held.to(states.dtype).reshape(*states.shape[:-1], self.num_references)

    def update(self, states: Tensor) -> TensorDictBase:
        """Learn from the views of a sample of states [*, F]."""
        if self.num_references == 0:
            return super().update(states)
        return self.measure.update(self._look(self._sample(states.reshape(-1, states.shape[-1]))))

    def view(self, states: Tensor) -> Tensor:
        """The views [n, *V] of states [n, F]: all of them."""
        return self._view(states)

    def threshold(self, delta: float) -> float:
        """Turn the paper's delta into the bound that the wrapped measure gives it."""
        return self.measure.threshold(delta)

    def _stride(self, states: Tensor) -> int:
        return -(-len(states) // self.samples)

    def _sample(self, states: Tensor) -> Tensor:
        """The middle of each piece of the states [n, F], or the end of a short last one."""
        stride = self._stride(states)
        middles = torch.arange(stride // 2, len(states) + stride // 2, stride, device=states.device)
        return states[middles.clamp(max=len(states) - 1)]

    def _look(self, sample: Tensor) -> Tensor:
        if self._seen is None or not torch.equal(self._seen[0], sample):
            self._seen = sample, self._view(sample)
        return self._seen[1]
