from __future__ import annotations

import torch

from sipo_trl.models.gaussian import GaussianHead


def test_initial_weights_and_std():
    head = GaussianHead(64, 4, initial_std=0.3, squashed=False)
    torch.testing.assert_close(head.loc.weight @ head.loc.weight.T, 1e-4 * torch.eye(4))
    assert not head.loc.bias.any()
    _, scale = head(torch.randn(10, 64))
    torch.testing.assert_close(scale, torch.full((10, 4), 0.3))


def test_std_does_not_depend_on_the_state_but_learns():
    head = GaussianHead(8, 2, initial_std=1.0, squashed=False)
    _, scale = head(torch.randn(10, 8))
    scale.sum().backward()
    torch.testing.assert_close(head.log_std.grad, torch.full((2,), 10.0))
    assert head.loc.weight.grad is None or not head.loc.weight.grad.any()


def test_squashed_means_are_bounded_and_hardly_changed_near_zero():
    head = GaussianHead(8, 2, initial_std=1.0, squashed=True)
    features = torch.randn(10, 8)
    torch.testing.assert_close(head(features)[0], head.loc(features), atol=1e-4, rtol=1e-3)
    assert head(1e30 * features)[0].abs().max() <= 5
