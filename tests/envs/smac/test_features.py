"""Values that are computed by hand from SMAC's definitions."""

import pytest
import torch

from sipo_trl.envs.smac import NO_ACTION, Features, Side, Snapshot, load_map


def side(health, shield, cooldown, position):
    return Side(
        *(
            torch.tensor([value], dtype=torch.float32)
            for value in (health, shield, cooldown, position)
        )
    )


def marines_and_zealot(
    *, health=(45.0, 27.0), zealot=(13.0, 16.0), places=((13.0, 12.0), (19.0, 12.0)), actions=(2, 6)
):
    """One marine hurt, the zealot's shield half down."""
    return Snapshot(
        side(health, (0.0, 0.0), (0.0, 7.5), places),
        side((100.0,), (25.0,), (3.0,), (zealot,)),
        torch.tensor([actions]),
    )


@pytest.fixture
def features():
    return Features(load_map("2m_vs_1z"))


@pytest.mark.parametrize(
    ("name", "layout", "sizes"),
    [
        ("2m_vs_1z", "smac", (16, 30, 26, 8)),
        ("2c_vs_64zg", "smac", (332, 535, 342, 10)),
        ("2m_vs_1z", "sipo", (22, 30, 26, 8)),
        ("2c_vs_64zg", "sipo", (338, 535, 342, 10)),
        ("3m", "smac", (30, 54, 48, 12)),
        ("2s3z", "smac", (80, 118, 120, 35)),
    ],
)
def test_sizes_are_those_of_smac(name, layout, sizes):
    spec = load_map(name)
    units = [
        (torch.ones(3, n),) * 3 + (torch.rand(3, n, 2),)
        for n in (spec.num_allies, spec.num_enemies)
    ]
    snapshot = Snapshot(Side(*units[0]), Side(*units[1]), torch.zeros(3, spec.num_allies).long())
    features = Features(spec, layout=layout)
    view = features(snapshot)
    assert tuple(features.sizes.values()) == sizes
    found = view.observation, view.agent_state, view.state, view.diversity_state
    assert tuple(part.shape[-1] for part in found) == sizes
    assert view.action_mask.shape == (3, spec.num_allies, spec.num_actions)


@pytest.mark.parametrize(("name", "most"), [("2m_vs_1z", 360), ("2c_vs_64zg", 3080)])
def test_largest_reward_is_smacs(name, most):
    assert Features(load_map(name)).max_reward == most


def test_observation(features):
    observation = features(marines_and_zealot()).observation[0]
    moves = [1, 1, 1, 1]
    first = [*moves, 1, 4 / 9, 0, 4 / 9, 1, 0.5, 1, 6 / 9, 6 / 9, 0, 0.6, 1]
    far = 52**0.5 / 9  # beyond 6, within 9
    second = [*moves, 0, far, -6 / 9, 4 / 9, 1, 0.5, 1, 6 / 9, -6 / 9, 0, 1, 0.6]
    torch.testing.assert_close(observation, torch.tensor([first, second]))


def test_observation_of_sipo_tells_more_of_the_agent_itself():
    snapshot = marines_and_zealot()
    smac, sipo = (
        Features(load_map("2m_vs_1z"), layout=layout)(snapshot).observation[0]
        for layout in ("smac", "sipo")
    )
    own = torch.tensor([[1, 0, 0, 0, 1, 1, 0], [1, 0, 0, 0, 0.6, 0, 1]])
    torch.testing.assert_close(sipo, torch.cat([smac[:, :-1], own], -1))


def test_global_state(features):
    state = features(marines_and_zealot()).state[0]
    allies = [1, 0, -3 / 32, -4 / 32, 0.6, 0.5, 3 / 32, -4 / 32]
    enemy = [1, -3 / 32, 0, 0.5]
    actions = [0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]
    torch.testing.assert_close(state, torch.tensor([*allies, *enemy, *actions]))
    start = features(marines_and_zealot(actions=(NO_ACTION, NO_ACTION))).state[0]
    assert not start[12:].any()


def test_state_of_each_agent(features):
    state = features(marines_and_zealot()).agent_state[0, 1]
    ally = [1, 6 / 9, -6 / 9, 0, 0, 1, -3 / 32, -4 / 32]
    enemy = [0, 52**0.5 / 9, -6 / 9, 4 / 9, 1, 1, 0.5, -3 / 32, 0]
    own = [1, 0, 0, 0, 0.6, 3 / 32, -4 / 32, 0, 1]
    torch.testing.assert_close(state, torch.tensor([*ally, *enemy, 1, 1, 1, 1, *own]))


def test_diversity_state_is_the_allies_part_of_the_state(features):
    view = features(marines_and_zealot())
    assert view.diversity_state.equal(view.state[:, :8])


def test_out_of_sight_is_out_of_the_observation_but_not_of_the_state(features):
    view = features(marines_and_zealot(zealot=(13.0, 21.0)))  # exactly 9 away
    assert not view.observation[0, 0, 4:10].any()
    assert view.agent_state[0, 0, 8:17].tolist()[:5] == [0, 1, 0, 1, 0]


def test_the_dead_see_nothing_and_do_nothing(features):
    view = features(marines_and_zealot(health=(0.0, 27.0)))
    assert not view.observation[0, 0].any()
    assert not view.agent_state[0, 0].any()
    assert view.action_mask[0, 0].tolist() == [True] + [False] * 6
    # And the living see nothing of them.
    assert not view.observation[0, 1, 10:15].any()
    assert not view.diversity_state[0, :4].any()


def test_dead_enemies_are_zero(features):
    snapshot = marines_and_zealot()
    dead = Side(*(value * 0 for value in vars(snapshot.enemies).values()))
    view = features(Snapshot(snapshot.allies, dead, snapshot.last_action))
    assert not view.observation[0, :, 4:10].any()
    assert not view.state[0, 8:12].any()
    assert not view.action_mask[0, :, 6].any()
    assert view.won.item()
    assert view.ended.item()


@pytest.mark.parametrize(("distance", "legal"), [(6.0, True), (6.01, False)])
def test_attacks_are_legal_up_to_six(features, distance, legal):
    view = features(marines_and_zealot(zealot=(13.0, 12.0 + distance)))
    assert view.action_mask[0, 0, 6].item() is legal
    assert view.observation[0, 0, 4].item() == legal


@pytest.mark.parametrize(
    ("place", "legal"),
    [
        ((6.2, 12.0), [True, True, True, False]),  # the left edge
        ((25.5, 12.0), [True, True, False, True]),
        ((12.0, 6.5), [True, False, True, True]),
        ((12.0, 25.0), [False, True, True, True]),
        ((8.5, 8.5), [True, False, True, False]),  # a corner
    ],
)
def test_moves_are_legal_where_the_next_cell_is_free(features, place, legal):
    view = features(marines_and_zealot(places=(place, (19.0, 12.0))))
    assert view.action_mask[0, 0, 2:6].tolist() == legal
    assert view.observation[0, 0, :4].tolist() == legal


def test_moves_end_at_the_edge_of_the_map_and_colossi_climb():
    features = Features(load_map("2c_vs_64zg"))
    full, none = torch.full((1, 2), 200.0), torch.zeros(1, 2)
    lings = Side(torch.ones(1, 64), torch.zeros(1, 64), torch.zeros(1, 64), torch.zeros(1, 64, 2))
    places = torch.tensor([[[0.5, 10.5], [16.0, 14.5]]])
    view = features(Snapshot(Side(full, none, none, places), lings, none.long()))
    assert view.action_mask[0, :, 2:6].tolist() == [
        [True, False, True, False],
        [True, True, True, True],  # south of it is the cliff
    ]


def test_reward_counts_what_enemies_lose(features):
    before = marines_and_zealot()
    hit = side((90.0,), (0.0,), (0.0,), ((13.0, 16.0),))
    after = Snapshot(before.allies, hit, before.last_action)
    reward = features.reward(features(before), features(after))
    torch.testing.assert_close(reward, torch.tensor([[35 * 20 / 360]]))


def test_reward_of_a_kill_and_a_win(features):
    before = marines_and_zealot()
    dead = side((0.0,), (0.0,), (0.0,), ((13.0, 16.0),))
    reward = features.reward(
        features(before), features(Snapshot(before.allies, dead, before.last_action))
    )
    torch.testing.assert_close(reward, torch.tensor([[(125 + 10 + 200) * 20 / 360]]))


def test_regeneration_pays_as_in_smac(features):
    before = marines_and_zealot()
    healed = side((100.0,), (30.0,), (0.0,), ((13.0, 16.0),))
    reward = features.reward(
        features(before), features(Snapshot(before.allies, healed, before.last_action))
    )
    torch.testing.assert_close(reward, torch.tensor([[5 * 20 / 360]]))


def test_kinds_are_told_apart_where_there_are_several():
    spec = load_map("2s3z")
    ones = torch.ones(1, 5)
    units = Side(ones, ones, ones, torch.zeros(1, 5, 2))
    state = Features(spec)(Snapshot(units, units, torch.zeros(1, 5).long())).state[0]
    assert state[:35].view(5, 7)[:, 5:].tolist() == [[1, 0]] * 2 + [[0, 1]] * 3
    assert state[35:65].view(5, 6)[:, 4:].tolist() == [[1, 0]] * 2 + [[0, 1]] * 3


def test_unknown_layouts_are_refused():
    with pytest.raises(ValueError, match="choose one of"):
        Features(load_map("3m"), layout="mappo")
