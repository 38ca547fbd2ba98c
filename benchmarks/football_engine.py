"""The football engine alone: what :mod:`benchmarks.football` compares with."""

from typing import Any

import numpy as np

from sipo_trl.envs.football.matches import ACTIONS, Matches


class BareEngine(Matches):
    """Plays one match after another with random actions, and looks at nothing but their ends.

    Args:
        arrays: those of :class:`~sipo_trl.envs.football.Matches`, one row per process.

    Keyword Args:
        frames: steps of the engine per command.
        **options: those of :class:`~sipo_trl.envs.football.Matches`.
    """

    def __init__(self, arrays: dict[str, np.ndarray], *, frames: int, **options: Any) -> None:
        super().__init__(arrays, **options)
        self.frames = frames
        self._generator = np.random.default_rng()

    def run(self, command: int, copy: int) -> None:
        """Makes the steps, with the resets that are due."""
        size = (self.frames, self.scenario.agents)
        for actions in self._generator.integers(len(ACTIONS), size=size).tolist():
            for agent, action in enumerate(actions):
                self._engine.perform_action(self._actions[action], True, agent)
            _, info = self._advance()
            if self._ends(info, copy) or info.step >= 400:
                self._begin(int(self._generator.integers(2**31)))
                self.arrays["owner"][copy] = -1

    def idle(self, own: range) -> bool:
        """Has nothing to prepare."""
        return False
