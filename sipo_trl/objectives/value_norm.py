"""Value normalisation per head, with a mask."""

import torch
from torch import Tensor
from torchrl.modules import ValueNorm


class HeadValueNorm(ValueNorm):
    """Running mean and variance of value targets, one per head, blind to masked-out entries.

    The statistics are the debiased moving averages of MAPPO and of TorchRL's
    ``PopArtValueNorm``, which differs in three ways that matter here: the variance is averaged
    itself instead of as a difference of two large moments, so that small returns on a large
    offset keep their scale in float32; the floor is low enough for intrinsic returns with their
    factor 1/H; and dead agents, which keep producing targets, can be masked out.

    Keyword Args:
        shape: number of heads.
        beta: decay of the averages; closer to 1 is slower. The default is MAPPO's.
        epsilon: floor of the variance.
        device: where the statistics live.

    Examples:
        >>> norm = HeadValueNorm(shape=2)
        >>> targets = torch.tensor([[1.0, 10.0], [3.0, 30.0], [99.0, 99.0]])
        >>> norm.update(targets, torch.tensor([[True], [True], [False]]))
        >>> norm.denormalize(torch.zeros(2))
        tensor([ 2., 20.])
    """

    mean: Tensor
    variance: Tensor
    weight: Tensor

    def __init__(
        self,
        *,
        shape: int | tuple[int, ...] = 1,
        beta: float = 0.99999,
        epsilon: float = 1e-8,
        device: torch.device | None = None,
    ) -> None:
        super().__init__(shape=shape, epsilon=epsilon, device=device)
        self.beta = beta
        self.register_buffer("mean", torch.zeros(self.shape, device=device))
        self.register_buffer("variance", torch.ones(self.shape, device=device))
        self.register_buffer("weight", torch.zeros((), device=device))

    @torch.no_grad()
    def update(self, value_target: Tensor, mask: Tensor | None = None) -> None:
        """Folds targets [*, H] in, where ``mask`` [*, 1] is true (everywhere if not given)."""
        dims = self._check_trailing_shape(value_target)
        if mask is None:
            mask = torch.ones_like(value_target[..., :1], dtype=torch.bool)
        share = mask / mask.sum().clamp_min(1)
        batch_mean = (torch.where(mask, value_target, 0) * share).sum(dims)
        deviation = torch.where(mask, value_target - batch_mean, 0)
        batch_variance = (deviation.square() * share).sum(dims)
        # A batch of nobody alive has no weight. The first batch has all of it.
        step = (1 - self.beta) * mask.any()
        self.weight.add_(step * (1 - self.weight))
        rate = step / self.weight.clamp_min(1e-12)
        shift = batch_mean - self.mean
        self.variance.add_(rate * (batch_variance + (1 - rate) * shift.square() - self.variance))
        self.mean.add_(rate * shift)

    def scale(self) -> Tensor:
        """Standard deviation of each head [H]."""
        return self.variance.clamp_min(self.epsilon).sqrt()

    def normalize(self, value_target: Tensor) -> Tensor:
        """Brings targets [*, H] to mean 0 and deviation 1."""
        return (value_target - self.mean) / self.scale()

    def denormalize(self, normalised_value: Tensor) -> Tensor:
        """Brings the critic's predictions [*, H] back to the rewards' scale."""
        return normalised_value * self.scale() + self.mean
