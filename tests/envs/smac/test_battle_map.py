import pytest

from sipo_trl.envs.smac import load_map, map_names


@pytest.mark.parametrize(
    ("name", "allies", "enemies", "limit"),
    [("2m_vs_1z", 2, 1, 150), ("2c_vs_64zg", 2, 64, 400), ("3m", 3, 3, 60), ("2s3z", 5, 5, 120)],
)
def test_maps_are_those_of_smac(name, allies, enemies, limit):
    spec = load_map(name)
    assert (spec.num_allies, spec.num_enemies, spec.episode_limit) == (allies, enemies, limit)
    assert spec.num_actions == 6 + enemies


def test_ground_of_2m_vs_1z():
    free = load_map("2m_vs_1z").walkable()
    widths = {6: (10, 21), 9: (8, 23), 10: (6, 25), 21: (6, 25), 22: (8, 23), 25: (10, 21)}
    for row, (left, right) in widths.items():
        cells = free[row].nonzero().squeeze(1)
        assert (cells[0].item(), cells[-1].item(), len(cells)) == (left, right, right - left + 1)
    assert not free[:6].any()
    assert not free[26:].any()


def test_only_climbers_walk_on_the_cliff():
    spec = load_map("2c_vs_64zg")
    ground, climbed = spec.walkable(), spec.walkable(climbs=True)
    assert ground[12].nonzero().squeeze(1).tolist() == [0, 1, 2, 3, 28, 29, 30, 31]
    assert climbed[12].all()
    assert (ground == climbed)[[*range(12), *range(14, 32)]].all()


def test_an_unknown_map_is_named():
    with pytest.raises(ValueError, match="no map '8m': choose one of"):
        load_map("8m")


def test_every_file_is_a_map():
    assert all(load_map(name).name == name for name in map_names())
