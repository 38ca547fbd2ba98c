"""Returns of episodes that may be longer than one batch."""

import torch
from torch import Tensor, nn


class EpisodeReturns(nn.Module):
    """Sums rewards over episodes, carrying unfinished ones from batch to batch.

    The dual step needs ``D_j``, the mean intrinsic return of the episodes that ended in a batch;
    collectors cut episodes anywhere. Batches must come in order, with the same environments in
    the same rows.

    Args:
        batch_size: the leading dimensions of a batch, without time: usually ``[B]``.
        heads: number of rewards H that are summed side by side.

    Examples:
        >>> returns = EpisodeReturns([1], heads=1)
        >>> reward = torch.ones(1, 4, 1)
        >>> done = torch.tensor([[[False], [True], [False], [False]]])
        >>> returns(reward, done)  # one episode ended, with a return of 2
        tensor([2.])
        >>> returns(reward, done)  # the next one began in the batch before
        tensor([4.])
    """

    unfinished: Tensor

    def __init__(self, batch_size: torch.Size | list[int], heads: int) -> None:
        super().__init__()
        self.register_buffer("unfinished", torch.zeros(*batch_size, heads))

    @torch.no_grad()
    def per_step(self, reward: Tensor, done: Tensor) -> Tensor:
        """Writes each episode's return at its last step, NaN elsewhere [*B, T, H].

        Args:
            reward: [*B, T, H].
            done: [*B, T, 1].
        """
        total = reward.cumsum(-2) + self.unfinished.unsqueeze(-2)
        time = torch.arange(1, reward.shape[-2] + 1, device=reward.device).unsqueeze(-1)
        last_end = (time * done).cummax(-2).values  # 1-based; 0: none so far
        padded = torch.cat([torch.zeros_like(total[..., :1, :]), total], -2)
        before = torch.cat([torch.zeros_like(last_end[..., :1, :]), last_end], -2)
        at_end = padded.gather(-2, before.expand_as(padded))
        self.unfinished.copy_(total[..., -1, :] - at_end[..., -1, :])
        return torch.where(done, total - at_end[..., :-1, :], torch.nan)

    def forward(self, reward: Tensor, done: Tensor) -> Tensor:
        """Mean return of the episodes that ended in this batch [H]; NaN if none did."""
        returns = self.per_step(reward, done)
        return returns.nanmean(dim=tuple(range(returns.ndim - 1)))
