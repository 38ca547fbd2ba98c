"""A match goes on as it would have, whatever else its engine has played."""

import numpy as np
import pytest

from sipo_trl.envs.football import SCENARIOS, Matches
from sipo_trl.envs.football.engine import REVERSED, Engine
from sipo_trl.envs.football.matches import ACTIONS, START, configuration, layout

SCENARIO, AGENTS = "academy_3_vs_1_with_keeper", 3


def start(seed):
    return configuration(SCENARIOS[SCENARIO], seed)


@pytest.fixture(scope="module")
def engines():
    """Two, for matches in which the left and the right team move first."""
    return [Engine(start(seed)) for seed in range(2)]


@pytest.fixture
def actions():
    return np.random.default_rng(0).integers(len(ACTIONS), size=(12, AGENTS))


def play(engine, actions):
    import gfootball_engine as library

    for decisions in actions.tolist():
        for agent, action in enumerate(decisions):
            pressed = getattr(library.e_BackendAction, ACTIONS[action])
            engine.game.perform_action(pressed, True, agent)
        engine.step()
    return engine.save()


@pytest.mark.parametrize("seed", range(4))
def test_players_remember_the_ball_in_an_engine_where_there_is_nothing_to_remember(
    engines, actions, seed, monkeypatch
) -> None:
    engine = engines[seed % 2]
    engine.begin(start(seed))
    saved = play(engine, actions[:4])
    assert saved[REVERSED] == seed % 2
    expected = play(engine, actions[4:])
    monkeypatch.setattr(engine, "_until_in_play", lambda: None)
    engine.begin(start(seed + 2))
    engine.load(saved)
    assert np.array_equal(engine.save(), saved)
    assert np.array_equal(play(engine, actions[4:]), expected)


@pytest.mark.parametrize("practice", [0.0, 0.5])
def test_matches_that_take_turns_do_not_disturb_each_other(engines, actions, practice) -> None:
    types = {**layout(AGENTS), **START}
    arrays = {name: np.zeros((2, *shape), kind) for name, (kind, shape) in types.items()}
    matches = Matches(arrays, scenario=SCENARIO, frame_skip=1, practice=practice)

    def state(copy):
        return arrays["state"][copy, : arrays["length"][copy]].copy()

    practised = set()
    for seed in range(8):
        arrays["seed"][:] = seed, seed + 1
        matches._reset(0)
        practised.add(bool(arrays["practice"][0]))
        engines[seed % 2].load(state(0))
        for decisions in actions:
            expected = play(engines[seed % 2], decisions[None])
            matches._reset(1)
            for copy in (1, 0):
                arrays["action"][copy] = decisions
                matches._step(copy)
            assert np.array_equal(state(0), expected)
            if arrays["terminated"][0]:
                break
    assert len(practised) == (2 if practice else 1)
