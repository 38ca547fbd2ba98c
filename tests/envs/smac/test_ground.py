import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sipo_trl.envs.smac import load_map
from sipo_trl.envs.smac.ground import Ground
from sipo_trl.envs.smac.start import start_places


def settle(ground, position, alive, rounds=200):
    for _ in range(rounds):
        position = ground.move(position, torch.zeros_like(position), alive)
    return position


def test_units_are_pushed_apart_until_they_touch():
    ground = Ground(load_map("2m_vs_1z"))
    position = torch.tensor([[[13.0, 13.2, 20.0]], [[12.0, 12.1, 12.0]]])
    alive = torch.ones(1, 3, dtype=torch.bool)
    apart = settle(ground, position, alive)
    gap = (apart[:, 0, 0] - apart[:, 0, 1]).norm()
    torch.testing.assert_close(gap, torch.tensor(0.75), atol=1e-3, rtol=0)
    # Neither is heavier, so that their middle stays.
    torch.testing.assert_close(apart[..., :2].mean(-1), position[..., :2].mean(-1))
    assert apart[..., 2].equal(position[..., 2])


def test_the_dead_take_no_room():
    ground = Ground(load_map("2m_vs_1z"))
    position = torch.tensor([[[13.0, 13.2, 20.0]], [[12.0, 12.1, 12.0]]])
    alive = torch.tensor([[True, False, True]])
    assert settle(ground, position, alive).equal(position)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**31))
def test_no_step_leads_into_a_wall(seed):
    spec = load_map("2c_vs_64zg")
    ground, generator = Ground(spec), torch.Generator().manual_seed(seed)
    position = start_places(spec).T.unsqueeze(1).repeat(1, 4, 1)
    alive = torch.rand(4, 66, generator=generator) < 0.9
    kinds = [spec.walkable(climbs=unit.climbs) for unit in (*spec.allies, *spec.enemies)]
    free = torch.stack(kinds)
    way = torch.randn(2, 4, 66, generator=generator)
    for _ in range(30):
        position = ground.move(position, way * alive, alive)
        x, y = position.long()
        assert free[torch.arange(66), y, x].all()


def test_units_slide_along_walls():
    ground = Ground(load_map("3m"))
    position = torch.full((2, 1, 6), 8.01)
    position[0] = torch.tensor([2.0, 6.0, 10.0, 14.0, 18.0, 22.0])
    step = torch.full((2, 1, 6), -0.1)
    moved = ground.move(position, step, torch.ones(1, 6, dtype=torch.bool))
    torch.testing.assert_close(moved[0], position[0] - 0.1)
    assert moved[1].equal(position[1])
