import torch
from torchrl.modules import PopArtValueNorm

from sipo_trl.objectives import HeadValueNorm


def test_masked_entries_do_not_exist() -> None:
    masked, plain = HeadValueNorm(shape=3, beta=0.9), HeadValueNorm(shape=3, beta=0.9)
    for _ in range(5):
        targets, mask = torch.randn(6, 4, 3) * 9 + 2, torch.rand(6, 4, 1) < 0.5
        masked.update(torch.where(mask, targets, torch.nan), mask)
        plain.update(targets[mask.squeeze(-1)])
    probe = torch.randn(10, 3)
    torch.testing.assert_close(masked.normalize(probe), plain.normalize(probe))
    torch.testing.assert_close(masked.denormalize(masked.normalize(probe)), probe)


def test_it_is_torchrls_debiased_average() -> None:
    ours, theirs = HeadValueNorm(shape=2, beta=0.9).double(), PopArtValueNorm(shape=2, beta=0.9)
    for scale in (1.0, 3.0, 0.5, 2.0):
        targets = torch.randn(64, 2, dtype=torch.float64) * scale + scale
        ours.update(targets)
        theirs.double().update(targets)
        torch.testing.assert_close(ours.normalize(targets), theirs.normalize(targets))


def test_small_returns_on_a_large_offset_keep_their_scale() -> None:
    norm = HeadValueNorm(shape=1)
    for _ in range(50):
        norm.update(torch.randn(1000, 1) * 0.01 + 50)
    assert abs(norm.scale().item() - 0.01) < 1e-3


def test_a_batch_of_the_dead_teaches_nothing() -> None:
    norm = HeadValueNorm(shape=1, beta=0.5)
    norm.update(torch.tensor([[4.0], [6.0]]), torch.tensor([[True], [True]]))
    before = {key: value.clone() for key, value in norm.state_dict().items()}
    norm.update(torch.tensor([[9.0], [9.0]]), torch.tensor([[False], [False]]))
    assert all(torch.equal(value, before[key]) for key, value in norm.state_dict().items())
    assert norm.denormalize(torch.zeros(1)).item() == 5.0


def test_runs_without_reading_the_device() -> None:
    norm = HeadValueNorm(shape=2).to("meta")
    norm.update(torch.zeros(4, 2, device="meta"), torch.ones(4, 1, dtype=bool, device="meta"))
    assert norm.normalize(torch.zeros(4, 2, device="meta")).is_meta
