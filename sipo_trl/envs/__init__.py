"""Batched environments, each with a ``diversity_state`` and a ``success``.

- :class:`NavigationEnv`: 2-D navigation to one of several landmarks, with its geometry
  (:func:`draw_landmarks`, :func:`touched_landmark`), its score (:func:`most_frequent_landmark`)
  and its picture (:func:`sipo_trl.envs.navigation_plot.plot_paths`, to be imported from there, so
  that environment workers need not load matplotlib);
- :class:`HumanoidEnv`: a humanoid that walks towards a target, as in Isaac Gym;
  :class:`HumanoidVisualEnv`: the same, told apart by pictures;
- :class:`FootballEnv`: Google Research Football, a team that learns to score;
- :class:`RunningEnv`: gymnasium's half-cheetah, walker, ant and humanoid, many copies at once;
- :class:`EnvError`: what is raised where an engine behind an environment fails;
- :class:`SMACEnv`: StarCraft battles, each unit an agent;
- :class:`GridWorld`: the paper's example for diversity measures, with its five policies
  (:func:`paper_policies`) as :class:`GridPolicy`;
- :func:`solve_pbt`, :func:`solve_itr`: the 1-D problem that both frameworks solve exactly.
"""

from sipo_trl.envs.errors import EnvError
from sipo_trl.envs.football import FootballEnv
from sipo_trl.envs.gridworld import GridWorld
from sipo_trl.envs.gridworld_policies import GridPolicy, paper_policies
from sipo_trl.envs.humanoid import HumanoidEnv, HumanoidVisualEnv
from sipo_trl.envs.locomotion import RunningEnv
from sipo_trl.envs.navigation import (
    NavigationEnv,
    draw_landmarks,
    most_frequent_landmark,
    touched_landmark,
)
from sipo_trl.envs.one_dimensional import Solution, solve_itr, solve_pbt
from sipo_trl.envs.smac import SMACEnv

__all__ = [
    "EnvError",
    "FootballEnv",
    "GridPolicy",
    "GridWorld",
    "HumanoidEnv",
    "HumanoidVisualEnv",
    "NavigationEnv",
    "RunningEnv",
    "SMACEnv",
    "Solution",
    "draw_landmarks",
    "most_frequent_landmark",
    "paper_policies",
    "solve_itr",
    "solve_pbt",
    "touched_landmark",
]
