"""How much of the state space a population covers: its k-nearest-neighbour state entropy."""

from torch import Tensor

from evaluation.neighbours import kth_neighbour_distances
from evaluation.progress import Progress, silent


def knn_entropy(
    states: Tensor,
    k: int = 12,
    include_self: bool = False,
    *,
    progress: Progress = silent,
) -> float:
    """Mean of ``log(1 + d)``, d being each state's distance to its k-th nearest neighbour.

    Args:
        states: the pooled states [n, *F] of a whole population.
        k: which neighbour; the paper's is the 12th.
        include_self: whether a state counts as its own first neighbour, as in the published
            scripts, whose 12th neighbour is thus the 11th.
        progress: is told how many states are done, and of how many.

    Examples:
        >>> import math, torch
        >>> states = torch.tensor([[0.0], [1.0], [3.0]])
        >>> math.isclose(knn_entropy(states, k=1), math.log(2 * 2 * 3) / 3)
        True
        >>> knn_entropy(states, k=1, include_self=True)
        0.0
    """
    if include_self and k == 1:
        return 0.0
    return (
        kth_neighbour_distances(states, k - include_self, progress=progress).log1p().mean().item()
    )
