"""How differently humanoids use their joints."""

from collections.abc import Sequence

import torch
from torch import Tensor


def torque_distance(torques: Sequence[Tensor], published: bool = False) -> float:
    """Squared L2 distance of mean joint torques, averaged over the pairs of policies.

    Args:
        torques: torques at each step [n_i, D] of each policy. The published script took the foot
            sensors (features 75 to 86 of Isaac Gym's observation) for them: to reproduce its
            figures give these, with ``published=True``.
        published: whether pairs of a policy with itself, which are 0, are averaged in, as in the
            published script.

    Examples:
        >>> torques = [torch.tensor([[0.0], [2.0]]), torch.tensor([[4.0]])]
        >>> torque_distance(torques), torque_distance(torques, published=True)
        (9.0, 4.5)
    """
    if len(torques) < 2:
        raise ValueError(
            f"There are torques of {len(torques)} policies: a distance needs at least two."
        )
    if any(policy.ndim != 2 or policy.shape[1:] != torques[0].shape[1:] for policy in torques):
        shapes = ", ".join(str(list(policy.shape)) for policy in torques)
        raise ValueError(f"Torques must be [n, D] with the same D for all policies, got {shapes}.")
    means = torch.stack([policy.double().mean(0) for policy in torques])
    squared = torch.pdist(means).square()
    return 2 * squared.sum().item() / len(means) ** 2 if published else squared.mean().item()
