"""Games that break down, and what the environment makes of them."""

import pytest
import torch
from torchrl.envs.utils import check_env_specs

from sipo_trl.envs.smac.sc2 import backend

STOP, NORTH = 1, 2
LONG = 100.0


@pytest.fixture(scope="module")
def env(make_env):
    return make_env(2, seed=2**31)


@pytest.fixture
def started(env):
    return env.reset()


def act(state, *actions):
    """All agents of a battle do the same."""
    action = torch.tensor(actions).unsqueeze(-1).expand_as(state["agents", "action_mask"][..., 0])
    return state.clone().set(("agents", "action"), action)


def seeds(battles):
    return {create.random_seed for battle in battles for create in battle.created}


def test_specs_hold(env):
    check_env_specs(env)


def test_battles_are_begun_and_played_apart(env, started):
    state = env.step(act(started, NORTH, NORTH))["next"]
    step = act(state, NORTH, NORTH).set("_step", torch.tensor([False, True]))
    later = env.step(step)["next"]
    torch.testing.assert_close(later["position"][0], state["position"][0], rtol=0, atol=0)
    assert (later["position"][1, :, 1] > state["position"][1, :, 1]).all()
    later["_reset"] = torch.tensor([[False], [True]])
    begun = env.reset(later)
    torch.testing.assert_close(begun["position"][0], later["position"][0], rtol=0, atol=0)
    torch.testing.assert_close(begun["position"][1], started["position"][1], rtol=0, atol=0)


def test_each_game_has_a_seed_of_its_own_and_gets_another(env, started, game):
    env.set_seed(9)
    env.reset()
    created = [[create.random_seed for create in x.created[-2:]] for x in game.battles.values()]
    assert sorted(created) == [[2**31, 9], [2**31 + 1, 10]]


@pytest.mark.parametrize(
    ("request_name", "fault"),
    [
        ("step", "die"),
        ("step", "garbage"),
        ("action", "close"),
        ("observation", "refuse"),
        ("observation", "hang"),
    ],
)
def test_a_game_that_breaks_down_costs_an_episode(
    env, started, game, wait_for_end, caplog, request_name, fault
):
    state = env.step(act(started, STOP, NORTH))["next"]
    known, breakdowns = dict(game.battles), env.battles.breakdowns.tolist()
    game.faults.append((request_name, 0, fault))
    env.battles.pool.timeout = 0.1 if fault == "hang" else LONG
    step = act(state, STOP, NORTH).set("_step", torch.tensor([False, True]))
    result = env.step(step)["next"]
    env.battles.pool.timeout = LONG
    assert result["truncated"].tolist() == [[False], [True]]
    assert result["lost"].tolist() == [[False], [True]]
    assert not result["info", "episode_limit"].any()
    assert not result["terminated"].any()
    assert not result["success"].any()
    assert result["reward"].tolist() == [[0], [0]]
    seen = ("agents", "observation")
    torch.testing.assert_close(result[seen], state[seen], rtol=0, atol=0)
    assert env.battles.breakdowns.tolist() == [breakdowns[0], breakdowns[1] + 1]
    assert "Game 1 broke down and is replaced: " in caplog.text

    result["_reset"] = result["done"]
    state = env.reset(result)
    assert not env.step(act(state, STOP, NORTH))["next", "done"].any()
    (new,) = set(game.battles) - set(known)
    assert not seeds([game.battles[new]]) & seeds(known.values())


def test_a_game_that_breaks_down_between_episodes_is_replaced_at_once(env, started, game):
    before = env.battles.breakdowns.sum()
    game.faults.append(("debug", 0, "die"))
    state = env.reset()
    assert env.battles.breakdowns.sum() == before + 1
    assert not env.step(act(state, STOP, NORTH))["next", "done"].any()


def test_after_a_state_was_loaded_all_battles_are_lost_once(env, started):
    state = env.step(act(started, NORTH, STOP))["next"]
    saved = {name: value.clone() for name, value in env.state_dict().items()}
    env.step(act(state, NORTH, NORTH))
    env.load_state_dict(saved)
    result = env.step(act(state, NORTH, NORTH))["next"]
    assert result["lost"].all()
    torch.testing.assert_close(result["position"], state["position"], rtol=0, atol=0)
    state = env.reset()
    result = env.step(act(state, NORTH, NORTH))["next"]
    assert not result["done"].any()


def test_a_game_that_breaks_down_again_and_again_ends_the_run(
    make_env, game, wait_for_end, monkeypatch
):
    monkeypatch.setattr(backend, "PATIENCE", 1)
    env = make_env()
    state = env.reset()
    game.faults += [("step", 0, "die")] * 2
    assert env.step(act(state, NORTH))["next", "lost"].all()
    state = env.reset()
    message = r"Game 0 broke down 2 times without a whole episode(?s:.*)Connection already closed"
    with pytest.raises(RuntimeError, match=message):
        env.step(act(state, NORTH))
    wait_for_end(*list(game.battles)[-2:])
