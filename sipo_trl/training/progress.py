"""How far a training has come."""

import math
from dataclasses import asdict, dataclass


@dataclass
class Progress:
    """What a training has spent so far; part of its checkpoints."""

    attempt: int = 0
    """Attempts that were given up."""
    updates: int = 0
    """Updates in all attempts together: the rows of the metrics."""
    frames: int = 0
    """Environment steps spent, those of evaluations included."""
    attempt_frames: int = 0
    """Environment steps of the current attempt."""
    solved: int = 0
    """Updates in a row at whose end the task was solved."""
    held: int = 0
    """Updates in a row at whose end the task was solved and all constraints held."""
    promising: bool = False
    """Whether the last update was good enough for the attempt to exceed its share."""
    best_level: int = -1
    """How much the best policy so far achieves: one each for the task and for all constraints."""
    best_return: float = -math.inf
    """Its return; decides between policies of one level."""

    def state_dict(self) -> dict[str, float]:
        """All fields."""
        return asdict(self)

    def load_state_dict(self, state_dict: dict[str, float]) -> None:
        """Takes all fields over."""
        for name, value in state_dict.items():
            setattr(self, name, value)
