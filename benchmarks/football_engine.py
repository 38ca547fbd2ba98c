"""The football engine alone: what :mod:`benchmarks.football` compares with."""

import numpy as np

from sipo_trl.envs.football import SCENARIOS
from sipo_trl.envs.football.engine import Engine
from sipo_trl.envs.football.matches import ACTIONS, configuration, is_over
from sipo_trl.envs.football.scenario import DURATION


class BareEngine:
    """Plays one match after another with random actions, and looks at nothing but their ends.

    Args:
        arrays: none that it needs.

    Keyword Args:
        scenario: one of :data:`~sipo_trl.envs.football.SCENARIOS`.
        frames: steps of the engine per command.
    """

    def __init__(self, arrays: dict[str, np.ndarray], *, scenario: str, frames: int) -> None:
        import gfootball_engine as library  # which not everybody has

        self.scenario, self.frames = SCENARIOS[scenario], frames
        self._generator = np.random.default_rng()
        self._actions = [getattr(library.e_BackendAction, name) for name in ACTIONS]
        self._engine = Engine(configuration(self.scenario, seed=0))
        self._owner = -1

    def run(self, command: int, copy: int) -> None:
        """Makes the steps, with the resets that are due."""
        size = (self.frames, self.scenario.agents)
        for actions in self._generator.integers(len(ACTIONS), size=size).tolist():
            for agent, action in enumerate(actions):
                self._engine.game.perform_action(self._actions[action], True, agent)
            _, info = self._engine.step()
            over = is_over(info, self._owner, self.scenario) or info.step >= DURATION
            if info.ball_owned_team != -1:
                self._owner = info.ball_owned_team
            if over:
                seed = int(self._generator.integers(2**31))
                self._engine.begin(configuration(self.scenario, seed))
                self._owner = -1

    def idle(self, own: range) -> bool:
        """Has nothing to prepare."""
        return False
