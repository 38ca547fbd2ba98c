"""Many games, and what becomes of them; how they are played, see test_game.py."""

import pytest
import torch

from sipo_trl.envs.smac.sc2 import GameLost

STOP, NORTH = 1, 2
LONG = 100.0


@pytest.fixture(scope="module")
def games(make_games):
    return make_games(2, seed=2**31)


@pytest.fixture(autouse=True)
def _begin(games):
    games.begin([0, 1])


def act(*actions):
    """All allies of a game do the same."""
    return torch.tensor(actions).unsqueeze(1).expand(-1, 2)


def test_games_are_played_apart(games):
    start = games.units.clone()
    assert games.step(act(NORTH, NORTH), [1]) == []
    torch.testing.assert_close(games.units[0], start[0], rtol=0, atol=0)
    assert (games.sides[0].position[1, :, 1] > start[1, :2, -1]).all()
    games.step(act(NORTH, NORTH), [0, 1])
    games.begin([1])
    allies = games.sides[0].position
    torch.testing.assert_close(allies[1], start[1, :2, -2:], rtol=0, atol=0)
    assert (allies[0, :, 1] > start[0, :2, -1]).all()


def test_each_game_has_a_seed_of_its_own_and_gets_another(games, game):
    games.seed(7)
    seeds = [[create.random_seed for create in x.created] for x in game.battles.values()]
    assert sorted(seeds) == [[2**31, 7], [2**31 + 1, 8]]


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
def test_a_lost_game_costs_an_episode(games, game, wait_for_end, caplog, request_name, fault):
    games.step(act(STOP, NORTH), [0, 1])
    before, counts, known = games.units.clone(), list(games.lost), list(game.battles)
    game.faults.append((request_name, 0, fault))
    games.timeout = 0.1 if fault == "hang" else LONG
    assert games.step(act(STOP, NORTH), [1]) == [1]
    games.timeout = LONG
    torch.testing.assert_close(games.units, before, rtol=0, atol=0)
    assert games.lost == [counts[0], counts[1] + 1]
    assert "Game 1 was lost, and its episode with it: StarCraft II" in caplog.text
    games.begin([1])
    assert games.step(act(STOP, NORTH), [0, 1]) == []
    (new,) = set(game.battles) - set(known)
    used = {create.random_seed for old in known for create in game.battles[old].created}
    assert game.battles[new].created[0].random_seed not in used
    wait_for_end(*(set(known[-2:]) - {0}))


def test_a_game_that_is_lost_between_episodes_is_replaced_at_once(games, game):
    counts = sum(games.lost)
    game.faults.append(("debug", 0, "die"))
    games.begin([0, 1])
    assert sum(games.lost) == counts + 1
    assert games.step(act(STOP, NORTH), [0, 1]) == []


def test_a_game_that_is_lost_again_and_again_ends_the_run(make_games, game, wait_for_end):
    games = make_games()
    games.begin([0])
    game.faults += [("step", 0, "die")] * 4
    for _ in range(3):
        assert games.step(act(NORTH), [0]) == [0]
        games.begin([0])
    with pytest.raises(GameLost, match="Game 0 was lost 4 times in a row, without an episode"):
        games.step(act(NORTH), [0])
    games.close()
