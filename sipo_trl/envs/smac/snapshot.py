"""A moment of many battles: all that features are made of."""

from dataclasses import dataclass

from torch import Tensor

NO_ACTION = -1
"""The last action of agents that have not acted yet."""


@dataclass(frozen=True)
class Side:
    """The units of one side, in B battles.

    Attributes:
        health: hit points [B, N]; 0 for the dead.
        shield: shield points [B, N].
        cooldown: loops until the next attack [B, N], at least 0.
        position: x and y [B, N, 2]; of the dead, where they died.
    """

    health: Tensor
    shield: Tensor
    cooldown: Tensor
    position: Tensor

    @property
    def alive(self) -> Tensor:
        """Who lives [B, N]."""
        return self.health > 0


@dataclass(frozen=True)
class Snapshot:
    """A moment of B battles.

    Attributes:
        allies: the A units of the agents, in the order of a map's ``allies``.
        enemies: the E units against them.
        last_action: what the agents did before [B, A], int64; -1 at the start of an episode.
    """

    allies: Side
    enemies: Side
    last_action: Tensor
