import pytest
import torch
from scipy.spatial.distance import cdist

from sipo_trl.archive import Archive
from sipo_trl.measures import FinalStateMeasure


@pytest.mark.parametrize("saturation", [None, 0.4, 2.0])
def test_mean_distances_are_scipys(saturation):
    references = [torch.randn(count, 2) for count in (1, 40, 7)]
    states = torch.randn(25, 2)
    reward = FinalStateMeasure(references, saturation=saturation).reward(states)
    for index, final_states in enumerate(references):
        distances = torch.from_numpy(cdist(states, final_states)).float()
        if saturation is not None:
            distances = (distances / saturation).clamp(max=1)
        torch.testing.assert_close(reward[:, index], distances.mean(dim=1))


def test_small_distances_keep_their_digits():
    # Through a matrix product the distance, 1e-4, would come out as a multiple of 2e-3.
    states = torch.tensor([[5.0, 5.0]]).repeat(30, 1)
    reward = FinalStateMeasure([states + torch.tensor([1e-4, 0.0])]).reward(states)
    torch.testing.assert_close(reward, torch.full((30, 1), 1e-4), rtol=0.01, atol=0)


def test_more_distances_than_fit_a_table():
    references, states = [torch.randn(2000, 2), torch.randn(1000, 2)], torch.randn(700, 2)
    reward = FinalStateMeasure(references).reward(states)
    expected = torch.stack([torch.cdist(states, entry).mean(dim=1) for entry in references], dim=1)
    torch.testing.assert_close(reward, expected)


def test_a_mixture_passes_for_different_unless_distances_saturate():
    # SPEC section 11: half of the episodes end at the old landmark, half at a new one.
    old = [torch.zeros(10, 2)]
    mixture = torch.tensor([[0.0, 0.0], [1.0, 0.0]])
    assert FinalStateMeasure(old).reward(mixture).mean() >= 0.4
    assert FinalStateMeasure(old, saturation=0.4).reward(mixture).mean() < 0.9


def test_an_archive_gives_its_final_states(tmp_path):
    archive = Archive.create(tmp_path / "archive")
    states = torch.tensor([[0.0], [3.0], [9.0], [1.0]])
    step, episode = torch.tensor([0, 1, 2, 0]), torch.tensor([0, 0, 0, 1])
    archive.append(states, step=step, episode=episode)
    measure = FinalStateMeasure(archive)
    assert measure.reward(torch.tensor([[2.0]])).item() == (7 + 1) / 2


def test_an_empty_archive(tmp_path):
    measure = FinalStateMeasure(Archive.create(tmp_path / "archive"))
    assert measure.reward(torch.zeros(5, 2)).shape == (5, 0)


def test_saturation_must_be_positive():
    with pytest.raises(ValueError, match="saturation is 0"):
        FinalStateMeasure([], saturation=0)
