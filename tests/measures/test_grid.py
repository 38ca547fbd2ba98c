import pytest
import torch
from sklearn.metrics.pairwise import rbf_kernel

from sipo_trl.measures import RBFMeasure
from sipo_trl.measures._grid import KernelGrid


def exact(states, references, gamma):
    columns = [
        rbf_kernel(states.double(), some.double(), gamma=gamma).mean(1) for some in references
    ]
    return torch.stack([torch.from_numpy(column) for column in columns], dim=1)


@pytest.mark.parametrize("offset", [0.0, 30.0])
@pytest.mark.parametrize("variance", [0.02, 0.3])
def test_relative_error_is_small_even_in_the_tails(offset, variance) -> None:
    references = [torch.randn(5000, 2) * 0.5 + offset, torch.rand(3000, 2) + offset]
    measure = RBFMeasure(references, variance=variance, normalize=False, per_dimension=False)
    assert measure.grid is not None
    near = references[0][:200] + 0.01
    states = torch.cat([near, torch.randn(1000, 2) + offset, 3 * torch.randn(300, 2) + offset])
    expected = exact(states, references, 1 / (2 * variance))
    shown = expected > 1e-25
    assert shown.float().mean() > 0.5
    error = (-measure.reward(states).double() - expected).abs() / expected
    assert error[shown].max() < 1e-4
    assert (-measure.reward(states) >= 0).all()


def test_float64_states_are_measured_in_float64() -> None:
    references = [torch.randn(5000, 2, dtype=torch.float64)]
    measure = RBFMeasure(references, normalize=False, per_dimension=False)
    states = torch.randn(50, 2, dtype=torch.float64)
    torch.testing.assert_close(
        -measure.reward(states), exact(states, references, 25.0), rtol=1e-6, atol=1e-12
    )


def test_grid_and_tiles_agree() -> None:
    references = [torch.randn(4000, 2), torch.randn(4000, 2) + 1]
    measure, states = RBFMeasure(references), torch.randn(500, 2)
    by_grid = measure.reward(states)
    measure.grid = None
    torch.testing.assert_close(by_grid, measure.reward(states), rtol=1e-3, atol=1e-7)


def test_few_references_or_a_wide_range_take_no_grid() -> None:
    assert KernelGrid.fit([torch.randn(20, 2)]) is None
    assert KernelGrid.fit([torch.randn(100_000, 2) * 1e4]) is None
    assert RBFMeasure([torch.randn(5000, 3)]).grid is None


def test_loaded_references_get_a_new_grid() -> None:
    first, second = (RBFMeasure([torch.randn(5000, 2) + shift]) for shift in (0.0, 5.0))
    states = torch.randn(20, 2)
    assert not torch.allclose(first.reward(states), second.reward(states))
    second.load_state_dict(first.state_dict())
    torch.testing.assert_close(first.reward(states), second.reward(states))


def test_compiles_and_runs_on_meta() -> None:
    measure, states = RBFMeasure([torch.randn(5000, 2)]), torch.randn(20, 2)
    compiled = torch.compile(measure.reward, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(states), measure.reward(states))
    assert measure.to("meta").reward(states.to("meta")).is_meta
