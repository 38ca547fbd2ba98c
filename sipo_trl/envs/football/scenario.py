"""The scenarios: who stands where when an episode begins.

They are gfootball's own of the same names, with one difference: the keeper cannot be controlled.
With it, the engine would choose anew which players the agents control, in the midst of play.
"""

from dataclasses import dataclass, replace

import numpy as np

Place = tuple[float, float, str]
"""Where a player starts, on a pitch from -1 to 1 and from -0.42 to 0.42, and the player's role."""

DURATION = 400
"""The engine's time limit."""
HORIZON = 1 + DURATION
"""Steps of the engine after which an episode is truncated: it gives the first the number 0."""
NEAREST = 0.9
"""How near to the goal line, which is at 1, an attack may begin."""


@dataclass(frozen=True)
class Scenario:
    """The start of an episode, and what ends it beside a goal and the ball out of play.

    Attributes:
        ball: where it lies.
        left: the team that learns, its keeper first.
        right: the other team, in the same coordinates: its own goal is at -1 too.
        lost_ball_ends: whether the episode ends when the other team gets the ball.
    """

    ball: tuple[float, float]
    left: tuple[Place, ...]
    right: tuple[Place, ...]
    lost_ball_ends: bool = True

    @property
    def agents(self) -> int:
        """How many players are controlled: all but the keeper."""
        return len(self.left) - 1

    def attack(self, generator: np.random.Generator) -> "Scenario":
        """The same with an attack under way: nearer to the goal, and any forward has the ball.

        Args:
            generator: decides how near, and who has the ball.

        Examples:
            >>> scenario = SCENARIOS["academy_3_vs_1_with_keeper"]
            >>> nearer = scenario.attack(np.random.default_rng(0))
            >>> nearer.ball[0] > scenario.ball[0], nearer.right == scenario.right
            (True, True)
        """
        forwards = [place for place in self.left[1:] if place[0] > 0]
        x, y, _ = forwards[generator.integers(len(forwards))]
        shift = generator.uniform() * max(0.0, NEAREST - x)
        width = generator.uniform(0.3, 1.0)

        def move(place: Place) -> Place:
            if place not in forwards:
                return place
            return min(place[0] + shift, NEAREST), place[1] * width, place[2]

        return replace(
            self,
            ball=(min(x + shift, NEAREST) + 0.02, y * width),
            left=tuple(move(place) for place in self.left),
        )


SCENARIOS: dict[str, Scenario] = {
    "academy_3_vs_1_with_keeper": Scenario(
        ball=(0.62, 0.0),
        left=((-1.0, 0.0, "GK"), (0.6, 0.0, "CM"), (0.7, 0.2, "CM"), (0.7, -0.2, "CM")),
        right=((-1.0, 0.0, "GK"), (-0.75, 0.0, "CB")),
    ),
    "academy_counterattack_easy": Scenario(
        ball=(0.26, -0.11),
        left=(
            (-1.0, 0.0, "GK"),
            (-0.672, -0.19576, "LB"),
            (-0.75, -0.06356, "CB"),
            (-0.75, 0.063559, "CB"),
            (-0.672, 0.19576, "RB"),
            (-0.434, -0.10568, "CM"),
            (-0.434, 0.10568, "CM"),
            (0.5, -0.3161, "CM"),
            (0.25, -0.1, "LM"),
            (0.25, 0.1, "RM"),
            (0.35, 0.316102, "CF"),
        ),
        right=(
            (-1.0, 0.0, "GK"),
            (0.128, -0.19576, "LB"),
            (0.4, -0.06356, "CB"),
            (-0.4, 0.063559, "CB"),
            (0.128, -0.19576, "RB"),
            (0.365, -0.10568, "CM"),
            (0.282, 0.0, "CM"),
            (0.365, 0.10568, "CM"),
            (0.54, -0.3161, "LM"),
            (0.51, 0.0, "RM"),
            (0.54, 0.316102, "CF"),
        ),
    ),
    "academy_corner": Scenario(
        ball=(0.99, 0.41),
        left=(
            (-1.0, 0.0, "GK"),
            (1.0, 0.42, "LB"),
            (0.7, 0.15, "CB"),
            (0.7, 0.05, "CB"),
            (0.7, -0.05, "RB"),
            (0.0, 0.0, "CM"),
            (0.6, 0.35, "CM"),
            (0.8, 0.07, "CM"),
            (0.8, -0.03, "LM"),
            (0.8, -0.13, "RM"),
            (0.7, -0.3, "CF"),
        ),
        right=(
            (-1.0, 0.0, "GK"),
            (-0.75, -0.18, "LB"),
            (-0.75, -0.08, "CB"),
            (-0.75, 0.02, "CB"),
            (-1.0, -0.1, "RB"),
            (-0.8, -0.25, "CM"),
            (-0.88, -0.07, "CM"),
            (-0.88, 0.03, "CM"),
            (-0.88, 0.13, "LM"),
            (-0.75, 0.25, "RM"),
            (-0.2, 0.0, "CF"),
        ),
        lost_ball_ends=False,
    ),
}
"""The scenarios by gfootball's names."""
