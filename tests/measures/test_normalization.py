import numpy as np
import pytest
import torch

from sipo_trl.archive import Archive
from sipo_trl.measures import StateNormalizer
from sipo_trl.measures.normalization import mean_and_std


@pytest.mark.parametrize("shape", [(1000, 3), (50, 2, 4), (1, 3), (3, 2_000_000)])
def test_statistics_are_numpys(shape):
    states = torch.randn(shape) * 0.01 + 1000
    mean, std = mean_and_std(states)
    exact = states.double().numpy()
    np.testing.assert_allclose(mean.numpy(), exact.mean(0), rtol=1e-6)
    np.testing.assert_allclose(std.numpy(), exact.std(0), rtol=1e-5)


def test_normalised_references_have_mean_zero_and_deviation_one():
    first = torch.randn(500, 3) * torch.tensor([0.1, 5.0, 20.0]) + 7
    normalizer = StateNormalizer.from_references([first, torch.randn(9, 3)])
    result = normalizer(first)
    torch.testing.assert_close(result.mean(0), torch.zeros(3), atol=1e-5, rtol=0)
    torch.testing.assert_close(result.std(0, correction=0), torch.ones(3))


def test_a_feature_that_hardly_varies_keeps_its_scale():
    first = torch.randn(500, 2) * torch.tensor([1e-6, 2e-3])
    normalizer = StateNormalizer.from_references([first])
    assert normalizer.scale[0] == 1
    assert normalizer.scale[1] == pytest.approx(2e-3, rel=0.2)
    assert StateNormalizer.from_references([first], floor=1e-9).scale[0] < 1e-5


def test_integer_images_are_scaled_to_one():
    images = torch.randint(0, 256, (5, 3, 4, 4), dtype=torch.uint8)
    normalizer = StateNormalizer.from_references([images])
    torch.testing.assert_close(normalizer(images), images / 255)


def test_an_archive_brings_its_own_statistics(tmp_path):
    archive = Archive.create(tmp_path / "archive")
    first = torch.randn(300, 3) * 4 + 30
    archive.append(first)
    archive.append(torch.randn(20, 3))
    normalizer = StateNormalizer.from_references(archive)
    assert torch.equal(normalizer.mean, archive.state_mean)
    assert torch.equal(normalizer.scale, archive.state_std)
    plain = StateNormalizer.from_references([first])
    torch.testing.assert_close(plain.mean, normalizer.mean)
    torch.testing.assert_close(plain.scale, normalizer.scale)


def test_statistics_are_state_but_not_parameters():
    normalizer = StateNormalizer.from_references([torch.randn(9, 2)])
    other = StateNormalizer.from_references([torch.randn(9, 2)])
    other.load_state_dict(normalizer.state_dict())
    assert not list(normalizer.parameters())
    assert torch.equal(other(torch.ones(2)), normalizer(torch.ones(2)))


def test_statistics_have_no_gradient():
    normalizer = StateNormalizer.from_references([torch.randn(9, 2, requires_grad=True)])
    assert not normalizer(torch.ones(2)).requires_grad


def test_the_identity_leaves_states_alone():
    states = torch.randn(5, 3)
    assert torch.equal(StateNormalizer.identity()(states), states)


def test_meta_references():
    normalizer = StateNormalizer.from_references([torch.empty(9, 2, device="meta")])
    assert normalizer(torch.empty(4, 2, device="meta")).shape == (4, 2)
