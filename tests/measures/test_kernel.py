import pytest
import torch

from sipo_trl.measures import _kernel
from sipo_trl.measures._kernel import kernel_error, kernel_mean


@pytest.fixture(autouse=True, params=[False, True], ids=["plain", "packed"])
def packs(request, monkeypatch):
    """Both ways to multiply, whichever this processor is better at."""
    if request.param and not torch.backends.mkldnn.is_available():
        pytest.skip("torch was built without oneDNN")
    monkeypatch.setattr(_kernel, "prefers_onednn", lambda: request.param)


def test_the_operator_keeps_its_contract():
    states, references = torch.randn(6, 3), torch.randn(9, 3)
    arguments = (states, references, references.mean(0), torch.ones(3), False)
    torch.library.opcheck(kernel_mean, arguments)


def test_the_centre_serves_accuracy_only():
    states, references = torch.randn(6, 3), torch.randn(9, 3)
    one, other = (
        kernel_mean(states, references, centre, torch.ones(3), True)
        for centre in (torch.zeros(3), torch.full([3], 10.0))
    )
    torch.testing.assert_close(one, other, rtol=1e-10, atol=0)


def test_many_tiles_are_summed():
    states, references = torch.randn(1100, 7), torch.randn(1300, 7)
    exact = torch.cdist(states.double(), references.double()).square().mul(-0.5).exp2().mean(1)
    means = kernel_mean(states, references, torch.zeros(7), torch.ones(7), False)
    torch.testing.assert_close(means.double(), exact, rtol=1e-4, atol=0)


def test_the_error_stays_below_its_bound():
    scale = torch.ones(5)
    for spread in (1.0, 10.0, 100.0, 1000.0):
        references = spread * torch.randn(800, 5)
        states = references[:200] + 0.3 * torch.randn(200, 5)
        arguments = (states, references, references.mean(0), scale)
        approximate, exact = kernel_mean(*arguments, False).double(), kernel_mean(*arguments, True)
        error = ((approximate - exact) / exact).abs().max().item()
        bound = kernel_error(*arguments[1:])
        assert error < bound < 30 * error + 1e-4  # safe, but not so that it says nothing
