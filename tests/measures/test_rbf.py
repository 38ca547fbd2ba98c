import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import rbf_kernel

from sipo_trl.measures import RBFMeasure


def exact(states, references, *, variance, normalize=True, per_dimension=True):
    """The definition, in float64 and by another library."""
    first = references[0].double().numpy()
    std = first.std(0)
    scale = np.where(std < 1e-3, 1, std) if normalize else 1
    features = first.shape[1] if per_dimension else 1
    columns = [
        rbf_kernel(
            states.double().numpy() / scale,
            entry.double().numpy() / scale,
            gamma=1 / (2 * variance * features),
        ).mean(1)
        for entry in references
    ]
    return torch.from_numpy(-np.stack(columns, axis=-1))


def near(references, count, distance):
    """States at about a distance from references, so that their kernel values are not zero."""
    rows = references[torch.randint(len(references), (count,))]
    noise = torch.randn_like(rows)
    return rows + noise / noise.norm(dim=1, keepdim=True) * distance


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("per_dimension", [True, False])
@pytest.mark.parametrize("offset", [0.0, 30.0])
@pytest.mark.parametrize("features", [2, 18, 144])
def test_relative_error_is_below_a_thousandth(features, offset, per_dimension, normalize):
    options = {"variance": 0.02, "normalize": normalize, "per_dimension": per_dimension}
    references = [torch.randn(700, features) + offset, 2 * torch.randn(300, features) + offset]
    sigma = math.sqrt(0.02 * (features if per_dimension else 1))
    parts = [near(references[j], 100, part * sigma) for j in (0, 1) for part in (0.0, 0.5, 2.0)]
    states = torch.cat(parts)
    expected = exact(states, references, **options)
    reward = RBFMeasure(references, **options).reward(states).double()
    assert (expected < -1e-7).sum() > 300  # there is something to compare
    torch.testing.assert_close(reward, expected, rtol=1e-3, atol=1e-10)


def test_wide_references_are_computed_in_float64():
    # Spread over hundreds of sigmas, float32's rounding of the norms would decide alone.
    references = [3000 * torch.randn(500, 8)]
    states = near(references[0], 200, 1.0)
    options = {"variance": 1.0, "normalize": False, "per_dimension": False}
    reward = RBFMeasure(references, **options).reward(states).double()
    expected = exact(states, references, **options)
    assert ((reward - expected) / expected).abs().max() < 1e-3


def test_far_states_are_harmless():
    measure = RBFMeasure([torch.randn(50, 4)])
    reward = measure.reward(torch.tensor([[1e3] * 4, [1e6] * 4, [1e12] * 4]))
    assert (reward <= 0).all()
    assert (reward > -1e-30).all()


def test_more_states_and_references_than_a_tile():
    references = [torch.randn(1300, 3), torch.randn(511, 3), torch.randn(1, 3)]
    states = torch.randn(1100, 3)
    expected = exact(states, references, variance=0.1)
    reward = RBFMeasure(references, variance=0.1).reward(states)
    torch.testing.assert_close(reward.double(), expected, rtol=1e-4, atol=1e-8)


def test_states_larger_than_a_block():
    # More features than fit a block with two states: images, taken as vectors from 0 to 1.
    images = torch.randint(0, 256, (5, 3, 420, 420), dtype=torch.uint8)
    reward = RBFMeasure([images]).reward(images[:3])
    flat = images.flatten(1) / 255
    options = {"variance": 0.02, "normalize": False}
    torch.testing.assert_close(
        reward.double(), exact(flat[:3], [flat], **options), rtol=1e-3, atol=0
    )


def test_float64_states_are_measured_in_float64():
    references, states = [torch.randn(90, 5).double()], torch.randn(40, 5).double()
    reward = RBFMeasure(references, variance=1.0, normalize=False).reward(states)
    expected = exact(states, references, variance=1.0, normalize=False)
    torch.testing.assert_close(reward, expected, rtol=1e-12, atol=0)


def test_temporary_memory_does_not_grow_with_the_archive():
    measure = RBFMeasure([torch.randn(100_000, 40)])  # the table alone would be 400 MB
    states = torch.randn(1000, 40)
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True
    ) as profile:
        measure.reward(states)
    memory, peak = 0, 0
    for event in profile.profiler.kineto_results.events():
        if event.name() == "[memory]":
            memory += event.nbytes()
            peak = max(peak, memory)
    assert 1e6 < peak < 64e6


def test_the_precision_is_chosen_again_for_loaded_references():
    wide, narrow = [1000 * torch.randn(50, 4)], [torch.randn(50, 4)]
    options = {"variance": 0.02, "normalize": False}
    measure = RBFMeasure(narrow, **options)
    measure.load_state_dict(RBFMeasure(wide, **options).state_dict())
    states = near(wide[0], 100, 0.2)
    expected = exact(states, wide, **options)
    assert ((measure.reward(states) - expected) / expected).abs().max() < 1e-3


def test_a_feature_of_noise_decides_nothing():
    # The second feature is constant but for noise; normalised, it would look all different.
    references = torch.stack([torch.randn(200), 1e-7 * torch.randn(200)], dim=1)
    states = references * torch.tensor([1.0, 50.0])
    clean = references * torch.tensor([1.0, 0.0])
    measure = RBFMeasure([references])
    torch.testing.assert_close(measure.reward(states), measure.reward(clean), rtol=1e-4, atol=0)


def test_variance_must_be_positive():
    with pytest.raises(ValueError, match="variance is 0"):
        RBFMeasure([], variance=0)


arrays = st.integers(0, 2**31).map(lambda seed: torch.Generator().manual_seed(seed))


@settings(max_examples=30, deadline=None)
@given(arrays, st.integers(1, 9), st.integers(1, 600), st.floats(1e-3, 10), st.integers(1, 100))
def test_rewards_are_bounded(generator, features, count, variance, horizon):
    references = 5 * torch.randn(count, features, generator=generator) + 3
    states = torch.cat([references, torch.randn(7, features, generator=generator)])
    reward = RBFMeasure([references], variance=variance, horizon=horizon).reward(states)
    assert (reward <= 0).all()
    assert (reward >= -1 / horizon).all()
    if count == 1:
        assert reward[0].item() == pytest.approx(-1 / horizon)


@settings(max_examples=20, deadline=None)
@given(arrays, st.integers(1, 9), st.integers(2, 900))
def test_order_and_repetition_of_references_do_not_matter(generator, features, count):
    references = torch.randn(count, features, generator=generator)
    shuffled = references[torch.randperm(count, generator=generator)]
    measures = [
        RBFMeasure([entry], normalize=False)
        for entry in (references, shuffled, references.repeat(2, 1))
    ]
    first, *others = (measure.reward(references[:50]) for measure in measures)
    for other in others:
        torch.testing.assert_close(other, first, rtol=1e-4, atol=1e-9)


@settings(max_examples=20, deadline=None)
@given(arrays, st.integers(1, 9), st.lists(st.integers(1, 700), min_size=2, max_size=4))
def test_an_entry_changes_no_other_column(generator, features, counts):
    references = [torch.randn(count, features, generator=generator) for count in counts]
    states = torch.randn(9, features, generator=generator)
    few, all_ = RBFMeasure(references[:-1]).reward(states), RBFMeasure(references).reward(states)
    assert torch.equal(all_[:, :-1], few)
