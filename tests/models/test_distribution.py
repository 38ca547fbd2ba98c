from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st
from torchrl.modules import TanhNormal

from sipo_trl.models import BoundedTanhNormal

LOW, HIGH = torch.tensor([-2.0, 0.0, -1.0]), torch.tensor([2.0, 10.0, 1.0])


def parameters() -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    return {"loc": torch.randn(50, 3), "scale": torch.rand(50, 3) + 0.1}


def test_equals_the_distribution_of_torchrl():
    ours = BoundedTanhNormal(**parameters(), low=LOW, high=HIGH)
    theirs = TanhNormal(**parameters(), low=LOW, high=HIGH)
    torch.manual_seed(1)
    action = ours.rsample()
    torch.manual_seed(1)
    torch.testing.assert_close(action, theirs.rsample())
    torch.testing.assert_close(ours.log_prob(action), theirs.log_prob(action))
    torch.testing.assert_close(ours.deterministic_sample, theirs.deterministic_sample)


def test_density_integrates_to_one():
    low, high = torch.tensor([0.0]), torch.tensor([10.0])
    policy = BoundedTanhNormal(torch.tensor([0.3]), torch.tensor([0.6]), low=low, high=high)
    grid = torch.linspace(1e-3, 10 - 1e-3, 20_001)
    density = policy.log_prob(grid.unsqueeze(-1)).exp()
    torch.testing.assert_close(torch.trapezoid(density, grid), torch.tensor(1.0), atol=1e-3, rtol=0)


@given(loc=st.floats(-5, 5), scale=st.floats(1e-3, 10))
def test_samples_keep_the_bounds_and_have_finite_densities(loc, scale):
    policy = BoundedTanhNormal(
        torch.full((100, 3), loc), torch.full((100, 3), scale), low=LOW, high=HIGH
    )
    action = policy.sample()
    assert ((action >= LOW) & (action <= HIGH)).all()
    assert policy.log_prob(action).isfinite().all()


def test_bounds_may_differ_between_agents():
    low, high = -torch.tensor([[1.0], [2.0]]), torch.tensor([[3.0], [4.0]])
    policy = BoundedTanhNormal(torch.zeros(5, 2, 1), torch.ones(5, 2, 1), low=low, high=high)
    torch.testing.assert_close(policy.deterministic_sample, torch.ones(5, 2, 1))
    assert policy.log_prob(policy.sample()).shape == (5, 2)


def test_meta_tensors():
    loc = torch.zeros(5, 3, device="meta")
    policy = BoundedTanhNormal(loc, loc, low=LOW, high=HIGH)
    assert policy.log_prob(policy.sample()).shape == (5,)
    assert policy.deterministic_sample.is_meta
