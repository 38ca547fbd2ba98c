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
        >>> returns(reward, done).squeeze()
        tensor([1., 2., 1., 2.])
        >>> finished_mean(returns(reward, done), done)  # began in the batch before
        tensor([4.])
    """

    unfinished: Tensor

    def __init__(self, batch_size: torch.Size | list[int], heads: int) -> None:
        super().__init__()
        self.register_buffer("unfinished", torch.zeros(*batch_size, heads))

    @torch.no_grad()
    def forward(self, reward: Tensor, done: Tensor) -> Tensor:
        """The return of each step's episode up to this step [*B, T, H].

        Args:
            reward: [*B, T, H].
            done: [*B, T, 1], true at the last step of an episode.
        """
        total = reward.cumsum(-2) + self.unfinished.unsqueeze(-2)
        time = torch.arange(1, reward.shape[-2] + 1, device=reward.device).unsqueeze(-1)
        last_end = (time * done).cummax(-2).values  # 1-based; 0: none so far
        totals = torch.cat([torch.zeros_like(total[..., :1, :]), total], -2)
        last_end = torch.cat([torch.zeros_like(last_end[..., :1, :]), last_end], -2)
        before = totals.gather(-2, last_end.expand_as(totals))
        self.unfinished.copy_(total[..., -1, :] - before[..., -1, :])
        return total - before[..., :-1, :]


def finished_mean(returns: Tensor, done: Tensor) -> Tensor:
    """Mean return of the episodes that end in a batch [H]; NaN if none does.

    Args:
        returns: what :class:`EpisodeReturns` gave [*B, T, H].
        done: [*B, T, 1].
    """
    ends = torch.where(done, returns, torch.nan)
    return ends.nanmean(dim=tuple(range(ends.ndim - 1)))


def whole_episode(returns: Tensor, done: Tensor) -> Tensor:
    """For each step the return of its whole episode, as far as the batch tells [*B, T, H].

    Args:
        returns: what :class:`EpisodeReturns` gave [*B, T, H].
        done: [*B, T, 1].
    """
    steps = returns.shape[-2]
    time = torch.arange(steps, device=returns.device).unsqueeze(-1)
    ends = torch.where(done, time, steps - 1)
    next_end = ends.flip(-2).cummin(-2).values.flip(-2)
    return returns.gather(-2, next_end.expand_as(returns))
