"""Compiled products go through oneDNN, and stay what they are."""

from collections.abc import Iterator
from itertools import pairwise

import pytest
import torch
from torch import Tensor, nn

from sipo_trl.training import compilation, onednn
from sipo_trl.training.compilation import compiled


class Losses:
    """A network's loss and gradients, as a training computes them."""

    def __init__(self, *sizes: int) -> None:
        torch.manual_seed(0)
        layers = [nn.Linear(i, o) for i, o in pairwise(sizes)]
        self.network = nn.Sequential(*(part for layer in layers for part in (layer, nn.ELU())))

    def gradients(self, inputs: Tensor) -> list[Tensor]:
        loss = self.network(inputs).square().mean()
        return [loss, *torch.autograd.grad(loss, list(self.network.parameters()))]


@pytest.fixture(name="replaced")
def count_replaced(monkeypatch) -> Iterator[list[list[int]]]:
    """The shapes of the products that were replaced, also on processors where that does not pay."""
    if not torch.backends.mkldnn.is_available():
        pytest.skip("this build of torch has no oneDNN")
    replaced: list[list[int]] = []
    replace = onednn._replace

    def replace_and_tell(node) -> None:
        replaced.append(list(node.meta["val"].shape))
        replace(node)

    monkeypatch.setattr(onednn, "_replace", replace_and_tell)
    monkeypatch.setattr(compilation, "prefers_onednn", lambda: True)
    # Graphs that were kept from another run would not be looked at again.
    with torch.compiler.config.patch(force_disable_caches=True):
        yield replaced


def test_gradients_of_large_layers_go_through_onednn_and_stay_the_same(replaced) -> None:
    losses, inputs = Losses(72, 128, 64, 3), torch.randn(96, 72)
    expected = losses.gradients(inputs)
    torch.testing.assert_close(compiled(losses.gradients)(inputs), expected)
    # Two layers forward, their two weights' gradients, and one layer's inputs'; none of the last.
    assert sorted(replaced) == [[64, 128], [96, 64], [96, 128], [96, 128], [128, 72]]


def test_thin_products_and_other_types_stay_with_torch(replaced) -> None:
    thin, double = Losses(72, 32, 3), Losses(72, 128)
    double.network.double()
    for losses, inputs in (
        (thin, torch.randn(96, 72)),
        (double, torch.randn(96, 72, dtype=torch.float64)),
    ):
        expected = losses.gradients(inputs)
        torch.testing.assert_close(compiled(losses.gradients)(inputs), expected)
    assert replaced == []


def test_a_matrix_can_be_multiplied_with_itself(replaced) -> None:
    class Square:
        def of(self, matrix: Tensor) -> Tensor:
            return matrix @ matrix

    matrix = torch.randn(70, 70)
    torch.testing.assert_close(compiled(Square().of)(matrix), matrix @ matrix)
    assert replaced == [[70, 70]]


def test_elsewhere_products_stay_as_they_are(replaced, monkeypatch) -> None:
    monkeypatch.setattr(compilation, "prefers_onednn", lambda: False)
    losses, inputs = Losses(72, 128), torch.randn(96, 72)
    expected = losses.gradients(inputs)
    torch.testing.assert_close(compiled(losses.gradients)(inputs), expected)
    assert replaced == []
