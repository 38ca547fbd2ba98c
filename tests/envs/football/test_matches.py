"""Every number equals that of gfootball's own wrappers, over whole episodes."""

import numpy as np
import pytest
import torch

from sipo_trl.envs.football import SCENARIOS, FootballEnv
from sipo_trl.envs.football.matches import ACTIONS

RIGHT, BOTTOM_RIGHT, SHOT, SPRINT = map(ACTIONS.index, ("right", "bottom_right", "shot", "sprint"))
SCORING_SEED = 44832411


def random_actions(time, ball, agents, generator):
    return generator.integers(0, len(ACTIONS), agents)


def attack(time, ball, agents, generator):
    """All run; the one with the ball shoots at the corner of the goal."""
    action = np.full(agents, RIGHT)
    if time == 1:
        action[0] = SPRINT
    elif ball > 0.78:
        action[0] = (SHOT if ball > 0.84 else RIGHT) if time % 2 else BOTTOM_RIGHT
    return action


@pytest.fixture(scope="module", params=SCENARIOS)
def pair(request, wrapped):
    ours = FootballEnv(request.param, batch_size=[1], seed=0, workers=1)
    yield ours, wrapped(request.param, ours.agents)
    ours.close()


def begin(ours, theirs, seed):
    ours.pool.arrays["seed"][0] = seed
    config = theirs.unwrapped._config
    config["game_engine_random_seed"] = seed
    config["reverse_team_processing"] = bool(seed % 2)
    data, observation = ours.reset(), theirs.reset()
    np.testing.assert_array_equal(data["agents", "observation"][0], observation)
    return data


def play(ours, theirs, seed, policy):
    """Plays an episode in both, which have to agree; returns its last step and its return."""
    data, generator = begin(ours, theirs, seed), np.random.default_rng(seed)
    total, done, time = 0.0, False, 0
    while not done:
        action = policy(time, data["ball"][0, 0].item(), ours.agents, generator)
        data["agents", "action"] = torch.from_numpy(action)[None]
        data = ours.step(data)["next"]
        observation, reward, done, info = theirs.step(action)
        np.testing.assert_array_equal(data["agents", "observation"][0], observation)
        assert data["reward"].item() == pytest.approx(reward.mean(), abs=1e-6)
        assert data["done"].item() == done
        assert data["success"].item() == (info["score_reward"] == 1)
        active = [player["active"] for player in theirs.unwrapped.observation()]
        assert active == list(range(1, 1 + ours.agents))
        total, time = total + data["reward"].item(), time + 1
    return data, total


@pytest.mark.parametrize("seed", [11, 12])
def test_random_episodes(pair, seed) -> None:
    play(*pair, seed, random_actions)


def test_a_goal(wrapped) -> None:
    scenario = "academy_3_vs_1_with_keeper"
    ours = FootballEnv(scenario, batch_size=[1], seed=0, workers=1)
    last, total = play(ours, wrapped(scenario, 3), SCORING_SEED, attack)
    assert last["success"].item()
    assert last["terminated"].item()
    assert not last["truncated"].item()
    assert total == pytest.approx(2)  # 1, and all checkpoints
    # What is seen next is the kick-off, but policies are told apart by how they scored.
    assert last["agents", "observation"][0, 0, 88] == 0
    assert last["ball"][0, 0] > 1
    ours.close()


def test_the_time_limit_truncates(wrapped) -> None:
    scenario = "academy_3_vs_1_with_keeper"
    ours = FootballEnv(scenario, batch_size=[1], seed=0, workers=1)
    last, _ = play(ours, wrapped(scenario, 3), 2, lambda *_: np.zeros(3, dtype=int))
    assert last["truncated"].item()
    assert not last["terminated"].item()
    assert ours.clock.item() == ours.horizon
    ours.close()
