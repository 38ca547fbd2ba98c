"""Measures of what is too costly to look at for every state."""

from collections.abc import Callable

import torch
from tensordict import TensorDictBase
from torch import Tensor

from sipo_trl.measures.base import StateDistanceMeasure

_GOLDEN_RATIO = (5**0.5 - 1) / 2


class SampledMeasure(StateDistanceMeasure):
    """Measures views of states, such as pictures, of which only an even sample is taken.

    Each state's reward is that of the sampled state that is nearest to it. Compared with a reward
    that is held for some time, this knows no episodes that it could confuse, and it is the more
    exact the more often states come back, as they do in a gait. No random numbers are involved.

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
        super().__init__(measure.num_references, horizon=measure.horizon)
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
        flat = states.flatten(0, -2)
        sample = self._sample(flat)
        rewards = self.measure.reward(self._look(sample))
        # float64, in which the distance from a state to itself is not above that to its like.
        nearest = torch.cdist(flat.double(), sample.double()).argmin(dim=-1)
        return rewards[nearest].to(states.dtype).unflatten(0, states.shape[:-1])

    def update(self, states: Tensor) -> TensorDictBase:
        """Learn from the views of a sample of states [*, F]."""
        if self.num_references == 0:
            return super().update(states)
        return self.measure.update(self._look(self._sample(states.flatten(0, -2))))

    def view(self, states: Tensor) -> Tensor:
        """The views [n, *V] of states [n, F]: all of them."""
        return self._view(states)

    def threshold(self, delta: float) -> float:
        """Turn the paper's delta into the bound that the wrapped measure gives it."""
        return self.measure.threshold(delta)

    def _sample(self, states: Tensor) -> Tensor:
        """One of each of ``samples`` equal parts of the states [n, F].

        Its place within its part differs from part to part: were it the same, all could be from
        the same moment of a batch [B, T].
        """
        count = min(self.samples, len(states))
        part = torch.arange(count, device=states.device, dtype=torch.float64)
        within = (part * _GOLDEN_RATIO) % 1
        return states[((part + within) * len(states) / count).long()]

    def _look(self, sample: Tensor) -> Tensor:
        if self._seen is None or not torch.equal(self._seen[0], sample):
            self._seen = sample, self._view(sample)
        return self._seen[1]
