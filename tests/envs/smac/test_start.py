import pytest
import torch

from sipo_trl.envs.smac import load_map, map_names
from sipo_trl.envs.smac.start import start_places


@pytest.mark.parametrize("name", sorted(map_names()))
def test_units_start_apart_on_free_ground_near_their_places(name):
    spec = load_map(name)
    places = start_places(spec)
    units = (*spec.allies, *spec.enemies)
    assert places.shape == (len(units), 2)
    room = torch.tensor([unit.separation for unit in units])
    gap = torch.cdist(places, places) - room - room.unsqueeze(1)
    same_side = (torch.arange(len(units)) < spec.num_allies).unsqueeze(1)
    same_side = same_side == same_side.T
    kind = torch.tensor([unit.type_id for unit in units])
    alike = same_side & (kind == kind.unsqueeze(1))
    assert (gap.fill_diagonal_(0)[alike] > -1e-4).all()
    x, y = places.long().T
    assert spec.walkable(climbs=True)[y, x].all()
    wanted = torch.tensor([*spec.ally_places, *spec.enemy_places])
    assert (places - wanted).norm(dim=1).max() < 4.5


def test_agents_of_a_kind_are_numbered_by_place():
    places = start_places(load_map("3m"))[:3]
    assert places.tolist() == sorted(places.tolist())
