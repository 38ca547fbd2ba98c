"""How far the policies of a population are from each other, under every state-distance measure."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evaluation.progress import Progress, silent
from sipo_trl.measures import (
    FinalStateMeasure,
    RBFMeasure,
    StateDistanceMeasure,
    WassersteinMeasure,
)

Matrix = NDArray[np.float64]

# Critics' weights reach their bounds within this many updates; after that little changes.
_CRITIC_UPDATES = 100
_CRITIC_STATES = 256

KERNEL_VARIANCE = 0.02


def rbf_distances(states: Sequence[Tensor], *, variance: float = KERNEL_VARIANCE) -> Matrix:
    """Minus the mean kernel value between states of two policies, normalised by the first's.

    Args:
        states: the states [n_i, *F] of each policy.
        variance: the kernel's; see :class:`~sipo_trl.measures.RBFMeasure`.

    Returns:
        Distances [M, M] in [-1, 0]; the diagonal tells how much a policy resembles itself.

    Examples:
        >>> rbf_distances([torch.zeros(3, 2), torch.full((4, 2), 0.2)]).round(3)
        array([[-1.   , -0.368],
               [-0.368, -1.   ]])
    """
    return _mean_rewards(RBFMeasure(states, variance=variance), states)


def final_state_distances(final_states: Sequence[Tensor]) -> Matrix:
    """Mean L2 distance between the final states of two policies' episodes.

    Args:
        final_states: the last state of each episode [E_i, *F], of each policy.

    Examples:
        >>> final_state_distances([torch.zeros(3, 2), torch.tensor([[3.0, 4.0]])])
        array([[0., 5.],
               [5., 0.]])
    """
    return _mean_rewards(FinalStateMeasure(final_states), final_states)


def wasserstein_distances(
    states: Sequence[Tensor],
    *,
    seed: int = 0,
    updates: int = _CRITIC_UPDATES,
    progress: Progress = silent,
) -> Matrix:
    """Differences of scores by critics that learn to tell each pair of policies apart.

    The critics are those of training, so that the unit is theirs; each policy's are trained at
    once, against all earlier policies.

    Args:
        states: the states [n_i, *F] of each policy.
        seed: decides the critics' first weights.
        updates: how often they learn.
        progress: is told how many policies are done, and of how many.

    Examples:
        >>> near, far = torch.zeros(30, 1), torch.full((30, 1), 4.0)
        >>> matrix = wasserstein_distances([near, near + 1, far], updates=50)
        >>> bool(matrix[0, 2] > matrix[0, 1] > matrix[0, 0] == 0)
        True
    """
    matrix = np.zeros((len(states), len(states)))
    for index, own in enumerate(states):
        progress(index, len(states))
        # A Wasserstein distance is symmetric: the earlier policies will do, as in training.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            measure = WassersteinMeasure(states[:index], batch_size=_CRITIC_STATES)
        for _ in range(updates):
            measure.update(own)
        # The references' mean is over as many states, evenly spaced.
        spaced = torch.arange(min(len(own), _CRITIC_STATES)) * len(own) // _CRITIC_STATES
        chosen = own if len(own) <= _CRITIC_STATES else own[spaced]
        matrix[index, :index] = measure.reward(chosen).double().mean(0).numpy()
    progress(len(states), len(states))
    return matrix + matrix.T


def distance_matrices(
    states: Sequence[Tensor],
    final_states: Sequence[Tensor] | None = None,
    *,
    variance: float = KERNEL_VARIANCE,
    seed: int = 0,
    progress: Progress = silent,
) -> Mapping[str, Matrix]:
    """The matrices [M, M] of all measures, by the measure's name.

    Args:
        states: the states [n_i, *F] of each policy.
        final_states: the last state of each episode [E_i, *F], of each policy; without them, the
            measure that needs them is left out.
        variance: see :func:`rbf_distances`.
        seed: see :func:`wasserstein_distances`.
        progress: the same.

    Examples:
        >>> states = [torch.zeros(3, 2), torch.ones(4, 2)]
        >>> list(distance_matrices(states, states))
        ['rbf', 'wd', 'final_state']
    """
    matrices = {
        "rbf": rbf_distances(states, variance=variance),
        "wd": wasserstein_distances(states, seed=seed, progress=progress),
    }
    if final_states is not None:
        matrices["final_state"] = final_state_distances(final_states)
    return matrices


def _mean_rewards(measure: StateDistanceMeasure, states: Sequence[Tensor]) -> Matrix:
    return np.stack([measure.reward(some).double().mean(0).numpy() for some in states])
