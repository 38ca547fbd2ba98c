"""What a worker does that also decides: plays its matches for many steps in a row.

A match that stays in the engine for a whole batch need not be put in and taken out at every step,
and nobody waits for a policy that decides for all matches at once.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sipo_trl.envs.football.matches import (
    ACTIONS,
    ACTIVE,
    MOST_PLAYERS,
    OBSERVATIONS,
    Matches,
    layout,
)
from sipo_trl.envs.workers.network import Layer, PlainNetwork, memory_size, weight_count

PLAY = 2

RECORDED = ("observation", "scene", "reward", "terminated", "truncated", "success", "practice")
"""What of a match is recorded after each step, as ``next_observation`` and so on."""


def play_layout(
    agents: int, steps: int, layers: Sequence[Layer]
) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Type and shape of what a match needs to be played for some steps, and of what is recorded.

    The team has ``weights`` and a ``memory``; ``noise`` decides what it draws. ``seeds`` are those
    of the episodes that may begin, of which there have been ``begun``. ``played`` steps have been
    made so far; of each there is what was ``seen`` and ``acted``, whether it ``starts`` an episode,
    and what followed.
    """
    match = layout(agents)
    following = {f"next_{name}": (match[name][0], (steps, *match[name][1])) for name in RECORDED}
    return {
        "weights": ("f4", (weight_count(layers),)),
        "memory": ("f4", (agents, memory_size(layers))),
        "noise": ("f4", (steps, agents, len(ACTIONS))),
        "seeds": ("i8", (steps + 1,)),
        "begun": ("i8", ()),
        "played": ("i8", ()),
        "seen": ("f4", (steps, OBSERVATIONS)),
        "acted": ("i8", (steps, agents)),
        "starts": ("?", (steps,)),
        **following,
    }


class Players(Matches):
    """Plays the matches of one worker, and decides for their team.

    Args:
        arrays: those of :class:`~sipo_trl.envs.football.Matches` and :func:`play_layout`, one row
            per match.

    Keyword Args:
        layers: the team's network.
        **options: those of :class:`~sipo_trl.envs.football.Matches`.
    """

    def __init__(
        self, arrays: dict[str, np.ndarray], *, layers: Sequence[Layer], **options: Any
    ) -> None:
        super().__init__(arrays, **options)
        self.layers = layers
        agents = self.scenario.agents
        self._seen = np.zeros((agents, OBSERVATIONS), np.float32)
        self._players = np.eye(MOST_PLAYERS, dtype=np.float32)[1 : 1 + agents]

    def run(self, command: int, copy: int) -> None:
        """Plays a match for as many steps as are recorded, or does what is asked for at each."""
        if command == PLAY:
            self._play(copy)
        else:
            super().run(command, copy)

    def idle(self, own: range) -> bool:
        """Prepares the next episode of a match, whichever have ended: nobody waits for a reset."""
        return self._prepare_one(own)

    def _play(self, copy: int) -> None:
        match = {name: array[copy] for name, array in self.arrays.items() if array.ndim > 1}
        arrays, network = self.arrays, PlainNetwork(self.layers, match["weights"])
        memory = match["memory"].copy()
        steps = range(int(arrays["played"][copy]), len(match["starts"]))
        if not self._over(copy):
            self._load(copy)
        for step in steps:
            match["starts"][step] = over = self._over(copy)
            if over:
                self._begin_next(copy)
                memory[:] = 0
            match["seen"][step] = match["observation"]
            scores, memory = network(self._each_sees(match["observation"]), memory)
            match["acted"][step] = actions = (scores + match["noise"][step]).argmax(1)
            self._decide(copy, actions.tolist())
            for name in RECORDED:
                match[f"next_{name}"][step] = arrays[name][copy]
            arrays["played"][copy] = step + 1
        if len(steps):
            match["action"][:] = match["acted"][-1]
            match["memory"][:] = memory
            self._keep(copy, self._engine.save())

    def _over(self, copy: int) -> bool:
        """Whether there is no episode under way."""
        arrays = self.arrays
        ended = arrays["terminated"][copy] or arrays["truncated"][copy]
        return bool(ended or not arrays["length"][copy])

    def _begin_next(self, copy: int) -> None:
        self._reset(copy)
        self._load(copy)
        self.arrays["begun"][copy] += 1
        self.arrays["seed"][copy] = self.arrays["seeds"][copy, self.arrays["begun"][copy]]

    def _each_sees(self, observation: np.ndarray) -> np.ndarray:
        self._seen[:] = observation
        self._seen[:, ACTIVE] = self._players
        return self._seen
