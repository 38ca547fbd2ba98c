"""What a worker does: plays several matches on one engine.

gfootball's own Python layers copy and convert every observation several times, which takes up to
half of the time. Here the engine is read directly; observations and rewards are theirs, to the
bit. An engine takes half a second to start and 50 MB, and a match can be put into it in a tenth
of a millisecond: so there is one engine per worker, which takes whichever match is next. An engine
for every match was slower when it was tried.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

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
STATE_BYTES = 2**18
"""Room for a saved match: 3 against 1 takes 60 kB."""
FIRST_BALL = slice(2524, 2536)
"""Where a saved match says where the ball first lay. Nothing depends on it any more, but an engine
takes only matches that began where the last one did that it has started itself."""


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
    kick-off that follows, as gfootball wants it, unless attacks are practised; the ``scene`` is
    that of the goal itself. In ``practice`` the episode has begun elsewhere than the scenario says.
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
        size: width and height of the engine's pictures; ``None`` for an engine that draws none.
    """

    def __init__(
        self,
        arrays: dict[str, np.ndarray],
        *,
        scenario: str,
        frame_skip: int,
        practice: float = 0.0,
        size: tuple[int, int] | None = None,
    ) -> None:
        import gfootball_engine as engine

        self.arrays, self.scenario, self.frame_skip = arrays, SCENARIOS[scenario], frame_skip
        self.practice = practice
        self._library = engine
        self._actions = [getattr(engine.e_BackendAction, name) for name in ACTIONS]
        self._engine = engine.GameEnv()
        self._engine.game_config.physics_steps_per_frame = 10
        if size is not None:
            self._engine.game_config.render = True
            self._engine.game_config.render_resolution_x = size[0]
            self._engine.game_config.render_resolution_y = size[1]
        self._engine.start_game()
        self._engine.state = engine.GameState.game_running
        # An engine takes only matches of the scenario that it has played before.
        self._begin(0)

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
        self._keep(copy, self._saved())

    def _decide(self, copy: int, actions: Sequence[int]) -> None:
        """Lets the agents of the match that is in the engine act, and sees what follows."""
        arrays, engine = self.arrays, self._engine
        for agent, action in enumerate(actions):
            engine.perform_action(self._actions[action], True, agent)
        reward, terminated, truncated = 0.0, False, False
        for _ in range(self.frame_skip):
            scene, info = self._advance()
            reward += self._reward(info, arrays["checkpoints"][copy])
            terminated, truncated = self._ends(info, copy), info.step >= DURATION
            if terminated or truncated:
                break
        arrays["scene"][copy] = seen = _observe(scene if terminated else info)
        # Where players stand at a kick-off depends on how the engine's last match began; where
        # attacks are practised that may be any.
        kick_off = terminated and not self.practice
        arrays["observation"][copy] = _observe(info) if kick_off else seen
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
        engine, start = self._engine, self._start(seed)
        engine.reset(_configuration(self._library, start, seed), False)
        self._first_ball = self._saved()[FIRST_BALL]
        info = engine.get_info()
        while not info.is_in_play:
            engine.step()
            info = engine.get_info()
        observation = np.asarray(_observe(info), np.float32)
        return self._saved(), observation

    def _saved(self) -> np.ndarray:
        return np.frombuffer(self._engine.get_state(b""), np.uint8)

    def _start(self, seed: int) -> Scenario:
        """Who stands where when the episode of a seed begins."""
        generator = np.random.default_rng(seed)
        practising = generator.uniform() < self.practice
        return self.scenario.attack(generator) if practising else self.scenario

    def _load(self, copy: int) -> None:
        """Puts a match into the engine."""
        state = self.arrays["state"][copy, : self.arrays["length"][copy]].copy()
        state[FIRST_BALL] = self._first_ball
        self._engine.set_state(state.tobytes())

    def _keep(self, copy: int, state: np.ndarray) -> None:
        self.arrays["length"][copy] = len(state)
        self.arrays["state"][copy, : len(state)] = state
        self.arrays["state"][copy, FIRST_BALL] = 0  # whatever the engine has started last

    def _advance(self) -> tuple[Any, Any]:
        """One step: what followed at once, and what followed when the ball was in play again."""
        self._engine.step()
        scene = info = self._engine.get_info()
        while not info.is_in_play:
            self._engine.step()
            info = self._engine.get_info()
        return scene, info

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
        owner, before = info.ball_owned_team, self.arrays["owner"][copy]
        lost = self.scenario.lost_ball_ends and owner != -1 and before != -1 and owner != before
        if owner != -1:
            self.arrays["owner"][copy] = owner
        normal = info.game_mode == self._library.e_GameMode.e_GameMode_Normal
        return lost or not normal or info.left_goals + info.right_goals > 0


def _configuration(engine: Any, scenario: Scenario, seed: int) -> Any:
    """The engine's description of an episode."""
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
