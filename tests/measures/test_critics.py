from functools import partial

import pytest
import torch
import torch.nn.functional as F
from single_critics import image_critic, vector_critic
from torch import Tensor

from sipo_trl.measures import WassersteinMeasure
from sipo_trl.measures import critics as critics_module
from sipo_trl.measures.critics import ALL, CHANNELS, ImageCritics, VectorCritics


def test_vector_critics_equal_single_networks():
    critics = VectorCritics(3, 5, hidden=[16, 8], bound=1.0)
    shared, own = torch.randn(1, 7, 5), torch.randn(3, 7, 5)
    for index in range(3):
        single = vector_critic(critics, index)
        torch.testing.assert_close(critics(shared)[index], single(shared[0])[:, 0])
        torch.testing.assert_close(critics(own)[index], single(own[index])[:, 0])


def test_image_critics_equal_single_networks():
    critics = ImageCritics(3, [2, 84, 84], hidden=[16], bound=0.1)
    shared, own = torch.randn(1, 4, 2, 84, 84), torch.randn(3, 4, 2, 84, 84)
    for index in range(3):
        single = image_critic(critics, index)
        torch.testing.assert_close(critics(shared)[index], single(shared[0])[:, 0])
        torch.testing.assert_close(critics(own)[index], single(own[index])[:, 0])


def test_the_papers_image_critic_has_the_papers_size():
    critics = ImageCritics(1, [12, 84, 84], hidden=[256], bound=0.01)
    convolutions = sum(9 * i * o + o for i, o in zip((12, *CHANNELS), CHANNELS, strict=False))
    hidden = 32 * 6 * 6 * 256 + 256  # 84 -> 42 -> 21 -> 11 -> 6
    assert sum(p.numel() for p in critics.parameters()) == convolutions + hidden + 256


def test_totals_are_weighted_sums_of_scores():
    critics = VectorCritics(3, 5, hidden=[16, 8], bound=1.0)
    states, weights = torch.randn(3, 7, 5), torch.randn(3, 7)
    expected = (critics(states) * weights).sum(dim=1)
    torch.testing.assert_close(critics.total(states, weights), expected)
    expected = (critics(states[:1]) * weights[:1]).sum(dim=1)
    torch.testing.assert_close(critics.total(states[:1], weights[:1]), expected)


@pytest.mark.parametrize("group", [ALL, slice(1, 3)])
@pytest.mark.parametrize("kind", ["vectors", "images"])
def test_gradients_are_those_of_autograd(kind, group):
    shape = (5,) if kind == "vectors" else (2, 9, 9)
    make = partial(VectorCritics, 3, 5) if kind == "vectors" else partial(ImageCritics, 3, shape)
    critics = make(hidden=[16, 8], bound=1.0).double()
    count = len(range(3)[group])
    pieces = [(torch.randn(n, 7, *shape), torch.randn(n, 7)) for n in (1, count)]
    pieces = [(states.double(), weights.double()) for states, weights in pieces]
    totals = sum(critics.total(*piece, group) for piece in pieces)
    expected = torch.autograd.grad(totals.sum(), list(critics.parameters()))
    for _ in range(2):  # the second call starts anew
        torch.testing.assert_close(critics.differentiate(pieces, group, torch.float64), totals)
    for parameter, gradient in zip(critics.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient)


@pytest.fixture(name="products")
def count_products(monkeypatch) -> list[torch.Size]:
    """The shapes of oneDNN's products, on processors where they do not pay, too."""
    if not torch.backends.mkldnn.is_available():
        pytest.skip("torch was built without oneDNN")
    shapes = []
    multiply = torch.ops.mkldnn._linear_pointwise

    def multiply_and_tell(*arguments) -> Tensor:
        product = multiply(*arguments)
        shapes.append(product.shape)
        return product

    monkeypatch.setattr(critics_module, "prefers_onednn", lambda: True)
    monkeypatch.setattr(torch.ops.mkldnn, "_linear_pointwise", multiply_and_tell)
    return shapes


def test_large_products_of_one_critic_go_through_onednn_and_stay_the_same(products):
    references, states = [torch.randn(300, 70), torch.randn(300, 70)], torch.randn(300, 70) + 1
    measure = WassersteinMeasure(references, hidden=[80, 90], precision="float32")
    twin = WassersteinMeasure(references, hidden=[80, 90]).double()
    twin.load_state_dict(measure.state_dict())
    products.clear()
    distance = measure.update(states)["distance"]
    # Forward and backward for each critic, and forward once more for its mean.
    one = [(600, 80), (600, 90), (80, 90), (600, 80), (70, 80)]
    assert sorted(products) == sorted(2 * [*one, (300, 80), (300, 90)])
    torch.testing.assert_close(distance.double(), twin.update(states.double())["distance"])
    for ours, theirs in zip(measure.critics.parameters(), twin.critics.parameters(), strict=True):
        torch.testing.assert_close(ours.grad.double(), theirs.grad, rtol=1e-4, atol=1e-6)


def test_scores_keep_their_gradient_where_onednn_is_faster(products):
    critics = VectorCritics(1, 70, hidden=[80], bound=0.1)
    states = torch.randn(1, 100, 70, requires_grad=True)
    (gradient,) = torch.autograd.grad(critics(states).sum(), states)
    assert products == []
    assert gradient.abs().sum() > 0


def test_compiled_rewards_do_without_onednn(monkeypatch):
    monkeypatch.setattr(critics_module, "prefers_onednn", lambda: True)
    measure = WassersteinMeasure([torch.randn(300, 70)])
    states = torch.randn(200, 70)
    compiled = torch.compile(measure.reward, fullgraph=True)
    torch.testing.assert_close(compiled(states), measure.reward(states))


def test_parameters_start_within_the_bound_and_differ():
    critics = VectorCritics(2, 5, hidden=[16], bound=0.01)
    for parameter in critics.parameters():
        assert 0.005 < parameter.abs().max() <= 0.01
        assert not torch.equal(parameter[0], parameter[1])


def test_the_width_is_that_of_the_largest_activation(monkeypatch):
    sizes = []
    original = F.leaky_relu_
    monkeypatch.setattr(F, "leaky_relu_", lambda x, a: sizes.append(x.numel()) or original(x, a))
    for critics, shape in (
        (VectorCritics(3, 9, hidden=[4, 16], bound=0.1), [9]),
        (ImageCritics(3, [2, 84, 84], hidden=[16], bound=0.1), [2, 84, 84]),
    ):
        sizes.clear()
        critics(torch.randn(1, 5, *shape))
        assert critics.width == max(sizes) // 5
