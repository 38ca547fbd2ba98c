"""What all measures that compare states with archived states have in common."""

import copy
import io

import pytest
import torch
from tensordict import MemoryMappedTensor

from sipo_trl.archive import Archive
from sipo_trl.measures import FinalStateMeasure, RBFMeasure, WassersteinMeasure

ALL = [RBFMeasure, WassersteinMeasure, FinalStateMeasure]
FEATURES = 3


@pytest.fixture
def references():
    return [torch.randn(30, FEATURES), torch.randn(20, FEATURES) + 1, torch.randn(5, FEATURES)]


@pytest.fixture
def archive(tmp_path, references):
    archive = Archive.create(tmp_path / "archive")
    for states in references:
        # Every state ends an episode of one step.
        episode = torch.arange(len(states))
        archive.append(states, step=torch.zeros_like(episode), episode=episode)
    return archive


@pytest.mark.parametrize("measure", ALL)
@pytest.mark.parametrize("batch", [(), (7,), (4, 5), (2, 3, 1)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_shape_and_dtype(measure, references, batch, dtype):
    reward = measure(references).reward(torch.randn(*batch, FEATURES, dtype=dtype))
    assert reward.shape == (*batch, 3)
    assert reward.dtype == dtype
    assert not reward.requires_grad


@pytest.mark.parametrize("measure", ALL)
def test_no_states_give_no_rewards(measure, references):
    assert measure(references).reward(torch.zeros(0, FEATURES)).shape == (0, 3)


@pytest.mark.parametrize("measure", ALL)
def test_integer_images_give_float_rewards(measure):
    images = [torch.randint(0, 256, (6, 3, 16, 16), dtype=torch.uint8) for _ in range(2)]
    reward = measure(images).reward(images[0].reshape(2, 3, 3, 16, 16))
    assert reward.shape == (2, 3, 2)
    assert reward.dtype == torch.float32


@pytest.mark.parametrize("measure", ALL)
def test_the_horizon_divides(measure, references):
    states = torch.randn(9, FEATURES)
    torch.manual_seed(1)
    one = measure(references).reward(states)
    torch.manual_seed(1)
    ten = measure(references, horizon=10).reward(states)
    torch.testing.assert_close(ten, one / 10)


@pytest.mark.parametrize("measure", ALL)
def test_actions_are_joined_with_states(measure):
    states, actions = torch.randn(4, 5, 2), torch.randn(4, 5, 3, 2)
    joined = torch.cat([states, actions.flatten(2)], dim=-1)
    one = measure([torch.randn(9, 8)])
    assert torch.equal(one.reward(states, actions), one.reward(joined))


@pytest.mark.parametrize("measure", ALL)
def test_wrong_states_are_named(measure, references):
    with pytest.raises(ValueError, match=r"states have the shape \[4, 2\].*shape \[3\]"):
        measure(references).reward(torch.zeros(4, 2))


@pytest.mark.parametrize("measure", ALL)
@pytest.mark.parametrize("wrong", [torch.zeros(0, 3), torch.zeros(3), torch.zeros(4, 2)])
def test_wrong_references_are_named(measure, references, wrong):
    with pytest.raises(ValueError, match="Reference 1 has the shape"):
        measure([references[0], wrong])


@pytest.mark.parametrize("measure", ALL)
def test_references_are_not_trained(measure, references):
    one = measure([states.requires_grad_() for states in references])
    trained = {parameter.data_ptr() for parameter in one.parameters()}
    assert not trained & {states.data_ptr() for states in one.references}
    one.update(torch.randn(9, FEATURES))
    assert all(map(torch.equal, one.references, references))
    assert not any(states.requires_grad for states in one.references)


@pytest.mark.parametrize("measure", ALL)
def test_later_changes_of_the_users_tensors_change_nothing(measure, references):
    states = torch.randn(9, FEATURES)
    one = measure(references)
    before = one.reward(states)
    references[0].fill_(7.0)
    assert torch.equal(one.reward(states), before)


@pytest.mark.parametrize("measure", ALL)
def test_state_dict_carries_references_that_are_nowhere_else(measure, references):
    states = torch.randn(9, FEATURES)
    one, other = measure(references), measure([torch.randn_like(r) * 1e4 for r in references])
    file = io.BytesIO()
    torch.save(one.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file, weights_only=True))
    assert torch.equal(other.reward(states), one.reward(states))


@pytest.mark.parametrize("measure", ALL)
def test_an_archive_equals_its_tensors(measure, archive, references):
    states = torch.randn(9, FEATURES)
    torch.manual_seed(1)
    from_archive = measure(archive).reward(states)
    torch.manual_seed(1)
    torch.testing.assert_close(from_archive, measure(references).reward(states))


@pytest.mark.parametrize("measure", [RBFMeasure, WassersteinMeasure])
def test_an_archive_is_not_copied(measure, archive):
    one = measure(archive)
    for mapped, entry in zip(one.references, archive, strict=True):
        assert mapped.data_ptr() == entry.states.data_ptr()
    assert not any(name.startswith("reference_0") for name in one.state_dict())
    states = torch.randn(9, FEATURES)
    other = measure(archive)
    other.load_state_dict(one.state_dict())
    assert torch.equal(other.reward(states), one.reward(states))


@pytest.mark.parametrize("measure", [RBFMeasure, WassersteinMeasure])
def test_memory_mapped_tensors_are_not_copied(measure, references):
    mapped = [MemoryMappedTensor.from_tensor(states) for states in references]
    one = measure(mapped)
    assert [r.data_ptr() for r in one.references] == [m.data_ptr() for m in mapped]
    assert "reference_0" not in one.state_dict()


@pytest.mark.parametrize("measure", ALL)
def test_deep_copies_are_independent(measure, references):
    states = torch.randn(9, FEATURES)
    one = measure(references)
    other = copy.deepcopy(one)
    before = one.reward(states)
    assert torch.equal(other.reward(states), before)
    other.get_buffer("reference_0").fill_(5.0)
    other.update(states)
    assert torch.equal(one.reward(states), before)


@pytest.mark.parametrize("measure", ALL)
@pytest.mark.parametrize("moved", [False, True])
def test_meta_tensors(measure, references, moved):
    states = torch.randn(4, 5, FEATURES, device="meta")
    one = measure(references if moved else [states.to("meta") for states in references])
    one = one.to("meta")
    assert one.reward(states).shape == (4, 5, 3)
    assert one.reward(states).device.type == "meta"
    one.update(states)


@pytest.mark.parametrize("measure", ALL)
def test_compiles_into_one_graph(measure, references):
    states = torch.randn(4, 5, FEATURES)
    one = measure(references)
    compiled = torch.compile(one.reward, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(states), one.reward(states))
