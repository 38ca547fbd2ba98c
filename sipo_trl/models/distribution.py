"""Distributions of actions, where TorchRL's own do not serve."""

from __future__ import annotations

import torch
from torch import distributions
from torchrl.modules import MaskedOneHotCategorical, OneHotCategorical
from torchrl.modules.distributions.continuous import SafeTanhTransform


class BoundedTanhNormal(distributions.TransformedDistribution):
    """A Gaussian squashed by tanh and stretched to the action bounds.

    The same distribution as :class:`torchrl.modules.TanhNormal`, which however compares its bounds
    on the host whenever it is built: that stalls a GPU at every step and fails on meta tensors.

    Args:
        loc: mean before squashing, ``[*, D]``.
        scale: standard deviation before squashing, ``[*, D]``.
        low: lowest action, broadcastable to ``[*, D]``.
        high: highest action, broadcastable to ``[*, D]``.

    Example:
        >>> bounds = {"low": torch.tensor([-2.0]), "high": torch.tensor([4.0])}
        >>> policy = BoundedTanhNormal(torch.zeros(5, 1), torch.ones(5, 1), **bounds)
        >>> policy.deterministic_sample[0]
        tensor([1.])
        >>> policy.log_prob(policy.sample()).shape
        torch.Size([5])
    """

    def __init__(
        self, loc: torch.Tensor, scale: torch.Tensor, *, low: torch.Tensor, high: torch.Tensor
    ) -> None:
        low, high = low.to(loc), high.to(loc)
        stretch = distributions.AffineTransform(loc=(high + low) / 2, scale=(high - low) / 2)
        normal = distributions.Independent(distributions.Normal(loc, scale), 1)
        super().__init__(normal, [SafeTanhTransform(), stretch])

    @property
    def deterministic_sample(self) -> torch.Tensor:
        """The image of the Gaussian's mean, ``[*, D]``; also the median of every component."""
        action = self.base_dist.mean
        for transform in self.transforms:
            action = transform(action)
        return action


class _OneMode:
    """Break ties between the most likely choices, all of which TorchRL would return as one."""

    logits: torch.Tensor

    @property
    def deterministic_sample(self) -> torch.Tensor:
        """The first of the most likely choices, one-hot ``[*, n]``."""
        best = self.logits.argmax(dim=-1, keepdim=True)
        return torch.zeros_like(self.logits, dtype=torch.long).scatter(-1, best, 1)


class OneHotChoice(_OneMode, OneHotCategorical):
    """TorchRL's one-hot categorical, whose deterministic sample is one-hot even at ties.

    A fresh policy that observes zeros has nothing but ties: its biases are zero.

    Example:
        >>> OneHotChoice(logits=torch.zeros(3)).deterministic_sample
        tensor([1, 0, 0])
    """


class MaskedOneHotChoice(_OneMode, MaskedOneHotCategorical):
    """The same for masked choices.

    Example:
        >>> mask = torch.tensor([False, True, True])
        >>> MaskedOneHotChoice(logits=torch.zeros(3), mask=mask).deterministic_sample
        tensor([0, 1, 0])
    """
