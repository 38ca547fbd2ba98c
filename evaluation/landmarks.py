"""Which landmarks a population of navigation policies reaches, and by which paths."""

from collections.abc import Sequence

import torch
from matplotlib.figure import Figure
from torch import Tensor

from sipo_trl.archive import Archive, ArchiveError, Entry
from sipo_trl.envs import draw_landmarks, most_frequent_landmark
from sipo_trl.envs.navigation_plot import plot_paths


def policy_landmarks(archive: Archive) -> list[int]:
    """The landmark that each policy ends at most often, -1 if it reaches none.

    Args:
        archive: policies of 2-D navigation, whose entries have a ``landmark`` column.
    """
    # Only the last step of an episode can touch a landmark, so no other step has an index.
    return [most_frequent_landmark(_column(entry, "landmark").flatten()) for entry in archive]


def count_landmarks(landmarks: Sequence[int]) -> int:
    """Number of distinct landmarks; policies without one count none.

    Examples:
        >>> count_landmarks([2, 0, 2, -1])
        2
    """
    return len(set(landmarks) - {-1})


def plot_archive(archive: Archive) -> Figure:
    """A picture of the paths that all policies of an archive take.

    Args:
        archive: policies of 2-D navigation, with their settings.
    """
    settings = archive[0].config
    landmarks = draw_landmarks(settings["env"]["num_landmarks"], seed=settings["seed"])
    return plot_paths(landmarks, [_paths(entry) for entry in archive])


def _paths(entry: Entry) -> list[Tensor]:
    """The episodes of a policy, each from the start [T + 1, 2]."""
    episodes = _column(entry, "episode")
    start = torch.zeros(1, 2)
    return [torch.cat([start, entry.states[episodes == e]]) for e in episodes.unique()]


def _column(entry: Entry, name: str) -> Tensor:
    if name not in entry.data.keys():
        raise ArchiveError(
            f"{entry.path} has no column {name!r}: landmarks are counted in archives of "
            "2-D navigation only."
        )
    return entry.data[name]
