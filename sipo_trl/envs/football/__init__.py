"""Google Research Football: a team that learns to score.

- :class:`FootballEnv`: the environment;
- :class:`Scenario`, :data:`SCENARIOS`: who stands where at the start;
- :class:`Matches`: what its worker processes do;
- :class:`Players`: what they do where they also decide.
"""

from sipo_trl.envs.football.env import FootballEnv
from sipo_trl.envs.football.matches import Matches
from sipo_trl.envs.football.players import Players
from sipo_trl.envs.football.scenario import SCENARIOS, Scenario

__all__ = ["SCENARIOS", "FootballEnv", "Matches", "Players", "Scenario"]
