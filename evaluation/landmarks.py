"""Which landmarks a population of navigation policies reaches, and by which paths."""

from collections.abc import Iterable, Sequence

import torch
from matplotlib.figure import Figure
from torch import Tensor

from evaluation.population import InputError, Policy, Population
from sipo_trl.envs import draw_landmarks, most_frequent_landmark
from sipo_trl.envs.navigation_plot import plot_paths


def policy_landmarks(policies: Iterable[Policy]) -> list[int]:
    """The landmark that each policy ends at most often, -1 if it reaches none.

    Args:
        policies: of 2-D navigation, with a ``landmark`` column.
    """
    # Only the last step of an episode can touch a landmark, so no other step has an index.
    return [most_frequent_landmark(policy.column("landmark").flatten()) for policy in policies]


def count_landmarks(landmarks: Sequence[int]) -> int:
    """Number of distinct landmarks; policies without one count none.

    Examples:
        >>> count_landmarks([2, 0, 2, -1])
        2
    """
    return len(set(landmarks) - {-1})


def layout(population: Population) -> Tensor:
    """The landmarks' centres [N, 2], drawn again from the run's settings."""
    settings = population.policies[0].config
    try:
        return draw_landmarks(settings["env"]["num_landmarks"], seed=settings["seed"])
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{population.name}: its settings do not tell the layout of landmarks ({error!r}): "
            "give an archive of 2-D navigation that keeps its settings."
        ) from error


def plot_population(population: Population) -> Figure:
    """A picture of the paths that all policies take.

    Args:
        population: policies of 2-D navigation, with their settings.
    """
    start = torch.zeros(1, 2)
    paths = [
        [torch.cat([start, policy.states[rows]]) for rows in policy.episodes]
        for policy in population
    ]
    return plot_paths(layout(population), paths)
