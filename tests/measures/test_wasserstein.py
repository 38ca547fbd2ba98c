import io

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import wasserstein_distance
from single_critics import image_critic, vector_critic

from sipo_trl.measures import WassersteinMeasure, wasserstein
from sipo_trl.measures.wasserstein import _rounded, _spaced
from sipo_trl.training.config import WassersteinConfig


def train_single(network, states, reference, *, steps, lr, clip):
    """Train one critic the usual way; return its last distance before the last step."""
    optimizer = torch.optim.RMSprop(network.parameters(), lr=lr)
    for _ in range(steps):
        distance = network(states).mean() - network(reference).mean()
        optimizer.zero_grad()
        (-distance).backward()
        optimizer.step()
        with torch.no_grad():
            for parameter in network.parameters():
                parameter.clamp_(-clip, clip)
    return distance.detach()


@pytest.mark.parametrize(
    ("shape", "make_single", "steps"), [((6,), vector_critic, 200), ((2, 9, 12), image_critic, 20)]
)
def test_training_equals_that_of_separate_networks(shape, make_single, steps):
    # In float64: RMSprop divides by the size of a gradient, which makes rounding noise visible.
    references = [torch.randn(40, *shape), torch.randn(40, *shape) + 1, torch.randn(25, *shape)]
    references = [states.double() for states in references]
    states = torch.randn(30, *shape).double() * 2
    measure = WassersteinMeasure(references, hidden=[16], normalize=False, lr=1e-3, clip=0.05)
    measure = measure.double()
    singles = [make_single(measure.critics, index) for index in range(3)]
    for _ in range(steps):
        metrics = measure.update(states)
    reward = measure.reward(states)
    for index, (network, reference) in enumerate(zip(singles, references, strict=True)):
        options = {"steps": steps, "lr": measure.lr, "clip": measure.clip}
        distance = train_single(network, states, reference, **options)
        torch.testing.assert_close(metrics["distance"][index], distance, rtol=1e-6, atol=1e-12)
        expected = (network(states) - network(reference).mean())[:, 0].detach()
        torch.testing.assert_close(reward[:, index], expected, rtol=1e-6, atol=1e-10)


def test_many_states_are_trained_on_in_pieces():
    references, states = [torch.randn(3000, 4).double()] * 2, torch.randn(2500, 4).double() + 1
    measure = WassersteinMeasure(references, hidden=[1024], normalize=False).double()
    assert measure.critics.width * 2500 > 2**20  # more than is scored at once
    network = vector_critic(measure.critics, 1)
    for _ in range(3):
        measure.update(states)
    train_single(network, states, references[1], steps=3, lr=measure.lr, clip=measure.clip)
    expected = (network(states) - network(references[1]).mean())[:, 0].detach()
    torch.testing.assert_close(measure.reward(states)[:, 1], expected, rtol=1e-6, atol=1e-10)


def test_parameters_are_clipped_and_there_is_no_output_bias():
    measure = WassersteinMeasure([torch.randn(50, 3)], clip=0.02)
    for _ in range(40):
        measure.update(torch.randn(50, 3) + 2)
    largest = [parameter.abs().max().item() for parameter in measure.parameters()]
    assert len(largest) == 5  # two hidden layers with bias, the output without
    assert max(largest) == pytest.approx(0.02)


def test_the_mean_distance_is_that_of_the_metrics():
    references, states = [torch.randn(50, 3), torch.randn(20, 3) + 3], torch.randn(30, 3) + 1
    measure = WassersteinMeasure(references, horizon=10, precision="float32")
    for _ in range(5):
        measure.update(states)
    mean = measure.reward(states).mean(dim=0) * 10
    metrics = measure.update(states)
    torch.testing.assert_close(metrics["distance"], mean, rtol=1e-4, atol=1e-8)
    torch.testing.assert_close(metrics["loss"], -mean.sum(), rtol=1e-4, atol=1e-8)


def test_archived_states_have_mean_reward_zero():
    references = [torch.randn(50, 3), torch.randn(17, 3) + 3]
    measure = WassersteinMeasure(references, clip=0.1)
    for _ in range(20):
        measure.update(torch.randn(30, 3))
        for index, states in enumerate(references):
            rewards = measure.reward(states)[:, index]
            assert rewards.mean().abs() < 1e-5 * rewards.abs().max()


def test_distances_of_shifted_distributions_grow_like_the_exact_ones():
    # Clipping makes a critic K-Lipschitz with some K, so distances are known up to that factor.
    states = torch.randn(200, 1)
    shifts = torch.tensor([-3.0, -1.5, 0.25, 0.5, 1.0, 2.0, 3.0])
    references = [states + shift for shift in shifts]
    measure = WassersteinMeasure(references, normalize=False)
    for _ in range(100):
        distance = measure.update(states)["distance"]
    exact = [wasserstein_distance(states[:, 0], reference[:, 0]) for reference in references]
    exact = torch.tensor(exact, dtype=torch.float32)
    torch.testing.assert_close(exact, shifts.abs())
    assert torch.corrcoef(torch.stack([distance, exact]))[0, 1] > 0.99
    # The order holds where differences are not small.
    sign = torch.sign(exact.unsqueeze(0) - exact.unsqueeze(1))
    assert (torch.sign(distance.unsqueeze(0) - distance.unsqueeze(1)) == sign)[sign != 0].all()


def test_scores_rise_towards_the_new_states():
    measure = WassersteinMeasure([torch.randn(200, 1)], normalize=False)
    for _ in range(100):
        measure.update(torch.randn(200, 1) + 3)
    scores = measure.reward(torch.linspace(-2, 5, 50).unsqueeze(1))[:, 0]
    assert (scores.diff() > 0).all()


@pytest.mark.parametrize("shape", [(3,), (2, 16, 16)])
def test_a_resumed_measure_goes_on_with_the_same_bits(shape):
    references = [torch.randn(70, *shape), torch.randn(41, *shape)]
    batches = torch.randn(6, 30, *shape)
    straight = WassersteinMeasure(references, batch_size=16)
    stopped = WassersteinMeasure(references, batch_size=16)
    stopped.load_state_dict(straight.state_dict())
    for batch in batches[:3]:
        straight.update(batch)
        stopped.update(batch)
    file = io.BytesIO()
    torch.save(stopped.state_dict(), file)
    file.seek(0)
    resumed = WassersteinMeasure(references, batch_size=16)
    resumed.load_state_dict(torch.load(file, weights_only=True))
    for batch in batches[3:]:
        straight.update(batch)
        resumed.update(batch)
    state = straight.state_dict()
    assert all(torch.equal(value, state[name]) for name, value in resumed.state_dict().items())
    assert torch.equal(resumed.reward(batches), straight.reward(batches))


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.integers(1, 500), min_size=1, max_size=4),
    st.integers(1, 300),
    st.floats(0, 1, exclude_max=True, width=32),
)
def test_selected_states_are_distinct_and_evenly_spaced(lengths, most, offset):
    index, weights = _spaced(lengths, most, torch.tensor(offset, dtype=torch.float64))
    torch.testing.assert_close(weights.sum(dim=1), torch.ones(len(lengths)).double())
    for rows, row_weights, length in zip(index, weights, lengths, strict=True):
        rows = rows[row_weights > 0]
        assert len(rows) == min(length, most)
        assert rows.unique().numel() == len(rows)
        assert 0 <= rows.min() <= rows.max() < length
        spacing = length / len(rows)
        assert ((rows.diff() >= int(spacing)) & (rows.diff() <= spacing + 1)).all()


def test_rounded_weights_keep_their_sums():
    weights = torch.cat([torch.full((2, 301), 1 / 301), -torch.full((2, 51), 1 / 51)], dim=1)
    weights[1, 300:301] = 0
    low = _rounded(weights, torch.bfloat16)
    assert low.dtype == torch.bfloat16
    torch.testing.assert_close(low.float(), weights, rtol=2**-7, atol=0)
    torch.testing.assert_close(
        low[:, :301].float().sum(1), weights[:, :301].sum(1), rtol=4e-5, atol=0
    )
    assert (weights.bfloat16()[0, :301].float().sum() - 1).abs() > 1e-3  # one by one they do not
    assert torch.equal(_rounded(weights, torch.float64), weights.double())


def test_updates_go_through_all_states_of_a_large_entry(monkeypatch):
    offsets = []

    def record(lengths, most, offset):
        offsets.append(offset)
        return _spaced(lengths, most, offset)

    monkeypatch.setattr(wasserstein, "_spaced", record)
    measure = WassersteinMeasure([torch.randn(100, 1)], batch_size=10)
    for _ in range(20):
        measure.update(torch.randn(10, 1))
    rows = torch.cat([_spaced([100], 10, offset)[0] for offset in offsets])
    assert rows.unique().numel() == 100


def test_an_update_needs_no_gradient_mode():
    measure = WassersteinMeasure([torch.randn(50, 3)])
    before = measure.reward(torch.ones(1, 3))
    with torch.no_grad():
        measure.update(torch.randn(30, 3) + 2)
    assert not torch.equal(measure.reward(torch.ones(1, 3)), before)


def test_entries_learn_independently():
    first, second = torch.randn(50, 3), torch.randn(50, 3) + 2
    states = torch.randn(30, 3)
    both = WassersteinMeasure([first, second])
    alone = WassersteinMeasure([first])
    state = both.state_dict()
    rows = {name: value[:1] for name, value in state.items() if name.startswith("critics")}
    alone.load_state_dict({**alone.state_dict(), **rows})
    for _ in range(5):
        both.update(states)
        alone.update(states)
    torch.testing.assert_close(both.reward(states)[:, :1], alone.reward(states))


def test_other_shapes_are_refused():
    with pytest.raises(ValueError, match=r"shape \[4, 5\].*vectors \[F\] or images"):
        WassersteinMeasure([torch.zeros(9, 4, 5)])


def test_wrong_states_are_named_in_updates():
    with pytest.raises(ValueError, match=r"states have the shape \[9, 2\]"):
        WassersteinMeasure([torch.zeros(9, 3)]).update(torch.zeros(9, 2))


def test_distances_saturate():
    states = torch.linspace(-3, 3, 50).unsqueeze(-1)
    bounded, free = (
        WassersteinMeasure([torch.zeros(9, 1)], normalize=False, clip=0.1, saturation=c)
        for c in (0.1, None)
    )
    for _ in range(100):
        bounded.update(torch.full((9, 1), 2.0))
    free.load_state_dict(bounded.state_dict())
    assert free.reward(states).max() > 0.2
    torch.testing.assert_close(bounded.reward(states), free.reward(states).clamp(max=0.1))


def test_a_saturation_must_be_a_distance():
    with pytest.raises(ValueError, match=r"saturation is 0\.0: give a positive distance"):
        WassersteinMeasure([torch.zeros(9, 1)], saturation=0.0)


def test_low_precision_learns_nearly_the_same():
    # Weights of these numbers of states, rounded one by one, would be too large or too small.
    references, states = [torch.randn(370, 6), torch.randn(51, 6) - 1], torch.randn(301, 6) + 0.5
    single, low, apart = (
        WassersteinMeasure(references, precision=precision)
        for precision in ("float32", "bfloat16", "bfloat16")
    )
    apart.load_state_dict(single.state_dict())
    for _ in range(100):
        low.load_state_dict(single.state_dict())
        results = [measure.update(states)["distance"] for measure in (single, low, apart)]
    expected, distance, learned = results
    assert not torch.equal(distance, expected)
    torch.testing.assert_close(distance, expected, rtol=0.01, atol=0)
    torch.testing.assert_close(learned, expected, rtol=0.03, atol=0)


def test_images_are_told_apart_in_single_precision():
    references, states = [torch.randn(9, 2, 16, 16)], torch.randn(9, 2, 16, 16) + 1
    expected = WassersteinMeasure(references, precision="float32")
    measure = WassersteinMeasure(references, precision="bfloat16")
    measure.load_state_dict(expected.state_dict())
    for _ in range(3):
        distance = measure.update(states)["distance"]
        assert torch.equal(distance, expected.update(states)["distance"])


def test_low_precision_is_that_of_updates_only():
    references, states = [torch.randn(50, 3), torch.randn(20, 3) + 3], torch.randn(30, 3)
    low = WassersteinMeasure(references, precision="bfloat16")
    for _ in range(5):
        low.update(states)
    single = WassersteinMeasure(references, precision="float32")
    single.load_state_dict(low.state_dict())
    assert all(value.dtype != torch.bfloat16 for value in low.state_dict().values())
    assert torch.equal(low.reward(states), single.reward(states))
    mean = single.critics(single.normalizer(references[0])[None])[0].mean()
    torch.testing.assert_close(low.reference_mean[0], mean, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("precision", ["auto", "bfloat16"])
def test_double_measures_compute_in_double_precision(precision):
    references, states = [torch.randn(50, 3).double()], torch.randn(30, 3).double()
    expected = WassersteinMeasure(references, precision="float32").double()
    measure = WassersteinMeasure(references, precision=precision).double()
    measure.load_state_dict(expected.state_dict())
    for _ in range(5):
        distance = measure.update(states)["distance"]
        assert torch.equal(distance, expected.update(states)["distance"])
    assert torch.equal(measure.reward(states), expected.reward(states))


@pytest.mark.parametrize(("native", "same_as"), [(True, "bfloat16"), (False, "float32")])
def test_the_processor_decides_on_the_precision(monkeypatch, native, same_as):
    monkeypatch.setattr(wasserstein, "computes_bfloat16", lambda device: native)
    references, states = [torch.randn(50, 3)], torch.randn(30, 3)
    expected = WassersteinMeasure(references, precision=same_as)
    measure = WassersteinMeasure(references)
    measure.load_state_dict(expected.state_dict())
    for _ in range(2):
        distance = measure.update(states)["distance"]
        assert torch.equal(distance, expected.update(states)["distance"])


def test_low_precision_on_the_meta_device():
    measure = WassersteinMeasure([torch.randn(50, 3)], precision="bfloat16").to("meta")
    assert measure.update(torch.randn(30, 3, device="meta"))["distance"].is_meta


def test_precisions_are_named():
    with pytest.raises(
        ValueError, match="precision is 'half': choose one of float32, bfloat16, au"
    ):
        WassersteinMeasure([torch.zeros(9, 1)], precision="half")


def test_the_settings_say_the_precision():
    config = WassersteinConfig(delta=0.1, precision="float32")
    assert config.make([torch.zeros(9, 1)], horizon=1).precision == "float32"
