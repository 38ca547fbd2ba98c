"""Which way the ball takes through a football team."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby

import torch
from torch import Tensor

Route = tuple[int, ...]


def ball_route(ball: Tensor, players: Tensor, threshold: float = 0.03) -> Route:
    """The players that have the ball in an episode, one after another.

    Args:
        ball: position of the ball at each step [T, 2]; a height [T, 3] is ignored.
        players: positions of the controlled players [T, P, 2].
        threshold: a player farther than this from the ball does not have it, in units of the pitch.

    Returns:
        Indices of players, without repeats in a row; of equally near players the first counts.

    Examples:
        >>> players = torch.tensor([[0.0, 0.0], [1.0, 0.0]]).expand(4, 2, 2)
        >>> ball = torch.tensor([[0.0, 0.01], [0.02, 0.0], [0.5, 0.0], [1.0, 0.02]])
        >>> ball_route(ball, players)
        (0, 1)
    """
    if len(ball) != len(players):
        raise ValueError(
            f"There are {len(ball)} positions of the ball and {len(players)} of the players: give "
            "both for every step."
        )
    distance, nearest = torch.linalg.vector_norm(players - ball[:, None, :2], dim=-1).min(dim=1)
    owners = nearest[distance <= threshold].tolist()
    return tuple(owner for owner, _ in groupby(owners))


def policy_route(routes: Iterable[Route]) -> Route | None:
    """A policy's route: the most frequent one of its won episodes, ``None`` if it won none.

    Args:
        routes: those of the won episodes; of equally frequent ones the smallest counts.

    Examples:
        >>> policy_route([(0, 1), (2,), (0, 1)])
        (0, 1)
        >>> policy_route([]) is None
        True
    """
    counts = Counter(routes)
    return min(counts, key=lambda route: (-counts[route], route), default=None)


def count_routes(routes: Sequence[Route | None]) -> int:
    """Number of distinct routes in a population; policies without a win count none.

    Examples:
        >>> count_routes([(0, 1), (2,), None, (0, 1)])
        2
    """
    return len(set(routes) - {None})
