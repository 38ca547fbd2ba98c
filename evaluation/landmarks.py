"""How many landmarks a population of navigation policies reaches."""

from collections.abc import Sequence

from sipo_trl.archive import Archive
from sipo_trl.envs import most_frequent_landmark


def policy_landmarks(archive: Archive) -> list[int]:
    """The landmark that each policy ends at most often, -1 if it reaches none.

    Args:
        archive: policies of 2-D navigation, whose entries have a ``landmark`` column.
    """
    landmarks = []
    for entry in archive:
        data = entry.data
        if "landmark" not in data.keys():
            raise ValueError(
                f"{entry.path} has no 'landmark' column: landmarks are counted in archives of "
                "2-D navigation only."
            )
        # Only the last step of an episode can touch a landmark, so no other step has an index.
        landmarks.append(most_frequent_landmark(data["landmark"].flatten()))
    return landmarks


def count_landmarks(landmarks: Sequence[int]) -> int:
    """Number of distinct landmarks; policies without one count none.

    Examples:
        >>> count_landmarks([2, 0, 2, -1])
        2
    """
    return len(set(landmarks) - {-1})
