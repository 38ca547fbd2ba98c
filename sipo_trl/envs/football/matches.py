"""What a worker does: plays several matches on one engine.

gfootball's own Python layers copy and convert every observation several times, which takes up to
half of the time. Here the engine is read directly; observations and rewards are theirs, to the
bit. A worker has two engines, one for matches in which the left team moves first and one for the
others, and takes whichever match is next. An engine for every match was slower when it was tried.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sipo_trl.envs.football.engine import REVERSED, Engine
from sipo_trl.envs.football.scenario import DURATION, SCENARIOS, Scenario

STEP, RESET = range(2)

ACTIONS = (
    "idle",
    "left",
    "top_left",
    "top",
    "top_right",
    "right",
    "bottom_right",
    "bottom",
    "bottom_left",
    "long_pass",
    "high_pass",
    "short_pass",
    "shot",
    "sprint",
    "release_direction",
    "release_sprint",
    "sliding",
    "dribble",
    "release_dribble",
)
"""The engine's names of the actions, in the order of gfootball's default set."""

OBSERVATIONS = 115
MOST_PLAYERS = 11
ACTIVE = slice(97, 108)
"""Where an observation says which player the agent controls: left to the environment."""

CHECKPOINTS, CHECKPOINT_REWARD = 10, 0.1
NORMAL = 0
"""The mode of a game that no rule has interrupted."""
STATE_BYTES = 2**18
"""Room for a saved match: 3 against 1 takes 60 kB."""

START = {
    "start_seed": ("i8", ()),
    "start_state": ("u1", (STATE_BYTES,)),
    "start_length": ("i8", ()),
    "start_observation": ("f4", (OBSERVATIONS,)),
}
"""Type and shape of the start of an episode that is prepared; its length is 0 until it is."""


def layout(agents: int) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Type and shape of what a match exchanges with the environment.

    ``state`` (of which ``length`` bytes count), ``checkpoints`` and ``owner`` are the match
    itself; ``seed`` is that of the next episode. After a goal the ``observation`` is of the
    kick-off that follows, as gfootball wants it, the ``scene`` that of the goal itself. In
    ``practice`` the episode has begun elsewhere than the scenario says.
    """
    return {
        "action": ("i8", (agents,)),
        "seed": ("i8", ()),
        "state": ("u1", (STATE_BYTES,)),
        "length": ("i8", ()),
        "checkpoints": ("i8", (agents,)),
        "owner": ("i8", ()),
        "observation": ("f4", (OBSERVATIONS,)),
        "scene": ("f4", (OBSERVATIONS,)),
        "reward": ("f4", ()),
        "terminated": ("?", ()),
        "truncated": ("?", ()),
        "success": ("?", ()),
        "practice": ("?", ()),
    }


class Matches:
    """Plays the matches of one worker.

    Args:
        arrays: those of :func:`layout` and :data:`START`, one row per match.

    Keyword Args:
        scenario: one of :data:`~sipo_trl.envs.football.SCENARIOS`.
        frame_skip: steps of the engine per action.
        practice: the share of episodes that begin with an attack under way.
    """

    def __init__(
        self,
        arrays: dict[str, np.ndarray],
        *,
        scenario: str,
        frame_skip: int,
        practice: float = 0.0,
    ) -> None:
        import gfootball_engine as library

        self.arrays, self.scenario, self.frame_skip = arrays, SCENARIOS[scenario], frame_skip
        self.practice = practice
        self._actions = [getattr(library.e_BackendAction, name) for name in ACTIONS]
        self._engines = [Engine(configuration(self.scenario, seed)) for seed in range(2)]
        if practice:
            self._beginner = Engine(configuration(self.scenario, seed=0))

    def run(self, command: int, copy: int) -> None:
        """Steps a match, or starts its next episode."""
        if command == STEP:
            self._step(copy)
        else:
            self._reset(copy)

    def idle(self, own: range) -> bool:
        """Prepares the next episode of a match, which takes as long as ten steps."""
        if (self.arrays["terminated"] | self.arrays["truncated"]).any():
            return False  # they are about to be reset, which is not to wait for this
        return self._prepare_one(own)

    def _prepare_one(self, own: range) -> bool:
        copy = next((copy for copy in own if not self._prepared(copy)), None)
        if copy is not None:
            self._prepare(copy)
        return copy is not None

    def _reset(self, copy: int) -> None:
        arrays = self.arrays
        if self._prepared(copy):
            state = arrays["start_state"][copy, : arrays["start_length"][copy]]
            observation = arrays["start_observation"][copy]
        else:
            state, observation = self._begin(int(arrays["seed"][copy]))
        self._keep(copy, state)
        practice = self._start(int(arrays["seed"][copy])) != self.scenario
        arrays["practice"][copy] = practice
        arrays["observation"][copy] = arrays["scene"][copy] = observation
        # Or else to pass the ball round near the goal would pay, too.
        arrays["checkpoints"][copy] = CHECKPOINTS if practice else 0
        arrays["owner"][copy] = -1
        for name in ("reward", "terminated", "truncated", "success"):
            arrays[name][copy] = 0

    def _step(self, copy: int) -> None:
        self._load(copy)
        self._decide(copy, self.arrays["action"][copy].tolist())
        self._keep(copy, self._engine.save())

    def _decide(self, copy: int, actions: Sequence[int]) -> None:
        """Lets the agents of the match that is in the engine act, and sees what follows."""
        arrays = self.arrays
        for agent, action in enumerate(actions):
            self._engine.game.perform_action(self._actions[action], True, agent)
        reward, terminated, truncated = 0.0, False, False
        for _ in range(self.frame_skip):
            scene, info = self._engine.step()
            reward += self._reward(info, arrays["checkpoints"][copy])
            terminated, truncated = self._ends(info, copy), info.step >= DURATION
            if terminated or truncated:
                break
        arrays["observation"][copy] = observation = _observe(info)
        arrays["scene"][copy] = _observe(scene) if terminated else observation
        arrays["reward"][copy] = reward
        arrays["terminated"][copy] = terminated
        arrays["truncated"][copy] = truncated
        arrays["success"][copy] = info.left_goals > 0

    def _prepared(self, copy: int) -> bool:
        arrays = self.arrays
        same = arrays["start_seed"][copy] == arrays["seed"][copy]
        return bool(same and arrays["start_length"][copy] > 0)

    def _prepare(self, copy: int) -> None:
        arrays, seed = self.arrays, int(self.arrays["seed"][copy])
        state, observation = self._begin(seed)
        # Others may look meanwhile, and this worker may be killed.
        arrays["start_length"][copy] = 0
        arrays["start_state"][copy, : len(state)] = state
        arrays["start_observation"][copy] = observation
        arrays["start_seed"][copy] = seed
        arrays["start_length"][copy] = len(state)

    def _begin(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """The engine's state at the start of an episode, and what is seen."""
        start = self._start(seed)
        # How teams line up is that of the match that their engine has begun last.
        engine = self._engines[seed % 2] if start == self.scenario else self._beginner
        info = engine.begin(configuration(start, seed))
        return engine.save(), np.asarray(_observe(info), np.float32)

    def _start(self, seed: int) -> Scenario:
        """Who stands where when the episode of a seed begins."""
        generator = np.random.default_rng(seed)
        practising = generator.uniform() < self.practice
        return self.scenario.attack(generator) if practising else self.scenario

    def _load(self, copy: int) -> None:
        """Puts a match into the engine that has begun others like it."""
        state = self.arrays["state"][copy, : self.arrays["length"][copy]]
        self._engine = self._engines[bool(state[REVERSED])]
        self._engine.load(state)

    def _keep(self, copy: int, state: np.ndarray) -> None:
        self.arrays["length"][copy] = len(state)
        self.arrays["state"][copy, : len(state)] = state

    def _reward(self, info: Any, checkpoints: np.ndarray) -> float:
        """The agents' mean reward: goals, and checkpoints that those with the ball pass."""
        goals = info.left_goals - info.right_goals
        if goals == 1:  # the remaining checkpoints are paid too
            reward = goals + CHECKPOINT_REWARD * (CHECKPOINTS - checkpoints.mean())
            checkpoints[:] = CHECKPOINTS
            return float(reward)
        agent = info.ball_owned_player - 1  # the keeper is player 0
        if info.ball_owned_team != 0 or agent < 0:
            return float(goals)
        ball = info.ball_position
        distance = ((ball[0] - 1) ** 2 + ball[1] ** 2) ** 0.5
        before = checkpoints[agent]
        while checkpoints[agent] < CHECKPOINTS and distance <= 0.99 - 0.8 / 9 * checkpoints[agent]:
            checkpoints[agent] += 1
        passed = checkpoints[agent] - before
        return float(goals + CHECKPOINT_REWARD * passed / len(checkpoints))

    def _ends(self, info: Any, copy: int) -> bool:
        """Whether a goal, the ball out of play or its loss ends the episode."""
        over = is_over(info, self.arrays["owner"][copy], self.scenario)
        if info.ball_owned_team != -1:
            self.arrays["owner"][copy] = info.ball_owned_team
        return over


def is_over(info: Any, last_owner: int, scenario: Scenario) -> bool:
    """Whether an episode ends with what is seen, where a team (or none, -1) had the ball last."""
    owner = info.ball_owned_team
    lost = scenario.lost_ball_ends and owner != -1 and last_owner != -1 and owner != last_owner
    return lost or int(info.game_mode) != NORMAL or info.left_goals + info.right_goals > 0


def configuration(scenario: Scenario, seed: int) -> Any:
    """The engine's description of an episode."""
    import gfootball_engine as engine

    config = engine.ScenarioConfig.make()
    config.game_duration = DURATION
    config.deterministic = False
    config.offsides = False
    config.end_episode_on_score = True
    config.end_episode_on_out_of_play = True
    config.end_episode_on_possession_change = scenario.lost_ball_ends
    config.ball_position[0], config.ball_position[1] = scenario.ball
    for places, team in ((scenario.left, config.left_team), (scenario.right, config.right_team)):
        for x, y, role in places:
            controllable = places is scenario.right or role != "GK"
            number = getattr(engine.e_PlayerRole, f"e_PlayerRole_{role}")
            team.append(engine.FormationEntry(x, y, number, False, controllable))
    config.left_agents, config.right_agents = scenario.agents, 0
    config.game_engine_random_seed = seed
    config.reverse_team_processing = bool(seed % 2)
    return config


def _observe(info: Any) -> list[float]:
    """The vector simple115v2, without the mark of the agent's own player."""
    features: list[float] = []
    for team in (info.left_team, info.right_team):
        positions, directions = [], []
        for player in team:
            position, direction = player.position, player.direction
            positions += [position[0], position[1]]
            directions += [direction[0], direction[1]]
        missing = [-1.0] * (2 * MOST_PLAYERS - len(positions))
        features += [*positions, *missing, *directions, *missing]
    for vector in (info.ball_position, info.ball_direction):
        features += [vector[0], vector[1], vector[2]]
    features += [float(info.ball_owned_team == team) for team in (-1, 0, 1)]
    features += [0.0] * MOST_PLAYERS
    current = int(info.game_mode)
    return features + [float(current == mode) for mode in range(7)]
