import pytest

from sipo_trl.envs.smac import load_map
from sipo_trl.envs.smac.paths import waypoints


def walk(table, start, goal):
    """The corners on the way between two cells (x, y)."""
    cell, target = start[1] * 32 + start[0], goal[1] * 32 + goal[0]
    corners = []
    while (cell := int(table[cell, target])) >= 0:
        corners.append((cell % 32, cell // 32))
        assert len(corners) < 10
    return corners


def test_ways_round_the_cliff_take_the_nearer_end():
    table = waypoints(load_map("2c_vs_64zg"))
    assert walk(table, (14, 9), (14, 16)) == [(3, 11), (3, 14)]
    assert walk(table, (20, 9), (20, 16)) == [(28, 11), (28, 14)]
    assert walk(table, (1, 11), (1, 14)) == []
    assert walk(table, (10, 9), (20, 10)) == []


def test_whoever_is_on_the_cliff_is_sought_from_the_nearer_side():
    table = waypoints(load_map("2c_vs_64zg"))
    assert walk(table, (14, 9), (14, 12)) == []
    assert walk(table, (14, 9), (14, 13)) == [(3, 11), (3, 14)]


def test_all_ways_lead_over_free_ground():
    spec = load_map("2c_vs_64zg")
    table, free = waypoints(spec), spec.walkable().flatten()
    assert free[table[table >= 0].unique().long()].all()


@pytest.mark.parametrize(
    ("name", "climbs"), [("3m", False), ("2m_vs_1z", False), ("2c_vs_64zg", True)]
)
def test_nobody_needs_a_way_on_open_ground(name, climbs):
    assert waypoints(load_map(name), climbs=climbs) is None
