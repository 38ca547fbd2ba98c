import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from evaluation.routes import ball_route, count_routes, policy_route

PLAYERS = torch.tensor([[0.0, 0.0], [0.5, 0.0], [0.5, 0.3]])


def follow(places):
    ball = torch.tensor(places)
    return ball_route(ball, PLAYERS.expand(len(ball), 3, 2))


def test_by_hand():
    # With the first, in flight, twice with the third, lost and found again, at last the second.
    places = [[0.0, 0.029], [0.2, 0.1], [0.5, 0.3], [0.51, 0.3], [9, 9], [0.5, 0.28], [0.5, 0.01]]
    assert follow(places) == (0, 2, 1)


def test_the_threshold_is_inclusive_and_can_be_set():
    ball, players = torch.tensor([[0.25, 0.0]]), torch.zeros(1, 1, 2)
    assert ball_route(ball, players, threshold=0.25) == (0,)
    assert ball_route(ball, players, threshold=0.24) == ()


def test_height_is_ignored_and_players_move():
    players = torch.stack([PLAYERS, PLAYERS.roll(1, 0)])
    ball = torch.tensor([[0.0, 0.0, 3.0], [0.0, 0.0, 5.0]])
    assert ball_route(ball, players) == (0, 1)


def test_a_missing_step_is_refused():
    with pytest.raises(ValueError, match="3 positions of the ball and 2 of the players"):
        ball_route(torch.zeros(3, 2), torch.zeros(2, 1, 2))


def test_the_most_frequent_route_is_the_policys():
    assert policy_route([(1,), (0, 1), (0, 1)]) == (0, 1)
    assert policy_route([(2,), (1, 0), (1, 0), (2,)]) == (1, 0)
    assert policy_route([]) is None


@given(st.lists(st.lists(st.integers(0, 2), max_size=3).map(tuple), min_size=1, max_size=6))
def test_a_second_copy_of_a_policy_adds_no_route(routes):
    assert count_routes([*routes, routes[0]]) == count_routes(routes)
    assert count_routes([*routes, None]) == count_routes(routes)
    assert count_routes(routes[::-1]) == count_routes(routes)
