"""A policy that could not be rebuilt is refused when it is appended, not when it is missed."""

import pytest
import torch
from torch import nn

from sipo_trl.archive import Archive, ArchiveError
from sipo_trl.registry import register_policy

from .helpers import listing, odd_policy


class Extra(nn.Linear):
    def get_extra_state(self):
        return {"any": "object"}

    def set_extra_state(self, state): ...


class Complex(nn.Module):
    def __init__(self):
        super().__init__()
        self.phase = nn.Parameter(torch.zeros(2, dtype=torch.complex64))


register_policy("linear", nn.Linear)
register_policy("extra", Extra)
LINEAR = {"builder": "linear", "kwargs": {"in_features": 2, "out_features": 1}}


@pytest.fixture
def archive(tmp_path):
    return Archive.create(tmp_path / "archive")


def test_recipe_given_by_hand(archive):
    policy = nn.Linear(2, 1)
    entry = archive.append(torch.zeros(1, 1), policy=policy, policy_spec=LINEAR)
    assert entry.load_policy().weight.equal(policy.weight)
    assert entry.load_policy().policy_spec == LINEAR


def test_recipe_given_by_hand_comes_before_the_policys_own(archive):
    policy = nn.Linear(2, 1)
    policy.policy_spec = {"builder": "unknown", "kwargs": {}}
    entry = archive.append(torch.zeros(1, 1), policy=policy, policy_spec=LINEAR)
    assert entry.load_policy().bias.equal(policy.bias)


def test_policy_without_weights(archive):
    register_policy("identity", nn.Identity)
    spec = {"builder": "identity", "kwargs": {}}
    entry = archive.append(torch.zeros(1, 1), policy=nn.Identity(), policy_spec=spec)
    assert isinstance(entry.load_policy(), nn.Identity)


@pytest.mark.parametrize(
    ("policy", "spec", "message"),
    [
        (nn.Linear(2, 1), None, r"\(Linear\) does not say how to rebuild it: give append a"),
        (None, LINEAR, "a policy_spec but no policy"),
        (nn.Linear(2, 1), {"builder": "nobody", "kwargs": {}}, "no policy builder 'nobody'"),
        (
            nn.Linear(2, 1),
            {**LINEAR, "kwargs": {"width": 3}},
            "unexpected keyword argument 'width'",
        ),
        (nn.Linear(2, 1), {**LINEAR, "kwargs": {"in_features": torch.zeros(())}}, "not plain JSON"),
        (nn.Linear(3, 1), LINEAR, r"makes 'weight' torch.float32 \[1, 2\], but .* \[1, 3\]"),
        (nn.Linear(2, 1).double(), LINEAR, r"'weight' torch.float32 .* have torch.float64"),
        (nn.Linear(2, 1, bias=False), LINEAR, "'linear' and the weights differ in bias"),
        (odd_policy(), LINEAR, "'linear' and the weights differ in "),
        (nn.LazyLinear(1), LINEAR, "could not be rebuilt"),
        (Complex(), LINEAR, "'phase' is a torch.complex64"),
        (Extra(2, 1), {**LINEAR, "builder": "extra"}, "'_extra_state' is a dict"),
    ],
)
def test_refused(archive, policy, spec, message):
    before = listing(archive.path)
    with pytest.raises(ArchiveError, match=message):
        archive.append(torch.zeros(1, 1), policy=policy, policy_spec=spec)
    assert listing(archive.path) == before
