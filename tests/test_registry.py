"""Policies are rebuilt by name, and by names from our own table only."""

import sys

import pytest
from torch import nn

from sipo_trl import registry
from sipo_trl.registry import build_policy, register_policy


@pytest.fixture(autouse=True)
def _fresh_registry(monkeypatch):
    monkeypatch.setattr(registry, "_USER_BUILDERS", {})


def test_registered_builder_gets_its_arguments():
    register_policy("linear", nn.Linear)
    spec = {"builder": "linear", "kwargs": {"in_features": 5, "out_features": 2, "bias": False}}
    policy = build_policy(spec)
    assert policy.weight.shape == (2, 5)
    assert policy.bias is None
    assert policy.policy_spec == spec


@pytest.mark.parametrize("name", registry._OWN_BUILDERS)
def test_own_builders_exist(name):
    assert callable(registry._find_builder(name))


def test_own_builder_is_imported_when_it_is_used(monkeypatch, tmp_path):
    (tmp_path / "lazy_models.py").write_text(
        "from torch import nn\ndef build(*, width): return nn.Linear(width, 1)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(registry._OWN_BUILDERS, "lazy", "lazy_models:build")
    assert "lazy_models" not in sys.modules
    assert build_policy({"builder": "lazy", "kwargs": {"width": 3}}).in_features == 3
    monkeypatch.delitem(sys.modules, "lazy_models")


def test_unknown_name_lists_the_known_ones_and_the_way_out():
    register_policy("mine", nn.Linear)
    with pytest.raises(ValueError, match=r"'other' \(known: actor, mine\).*register_policy"):
        build_policy({"builder": "other", "kwargs": {}})


@pytest.mark.parametrize("name", ["os:system", "os.system", "evil:run", "", None, 3, ["actor"]])
def test_a_name_is_never_imported(name, monkeypatch, tmp_path):
    (tmp_path / "evil.py").write_text("def run(): raise SystemExit\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ValueError, match="There is no policy builder"):
        build_policy({"builder": name, "kwargs": {}})
    assert "evil" not in sys.modules


@pytest.mark.parametrize(
    "spec",
    [None, [], {"builder": "linear"}, {"builder": "linear", "kwargs": {}, "import": "os"}],
)
def test_malformed_recipe_is_refused(spec):
    with pytest.raises(ValueError, match="The policy recipe must be"):
        build_policy(spec)


def test_kwargs_must_be_a_dict():
    register_policy("linear", nn.Linear)
    with pytest.raises(ValueError, match=r"'kwargs'.*must be a dict"):
        build_policy({"builder": "linear", "kwargs": [2, 3]})


def test_builder_must_return_a_module():
    register_policy("list", list)
    with pytest.raises(TypeError, match=r"'list' must return an nn\.Module, got a list"):
        build_policy({"builder": "list", "kwargs": {}})


def test_own_names_cannot_be_taken():
    with pytest.raises(ValueError, match="'actor' is sipo_trl's own"):
        register_policy("actor", nn.Linear)


def test_registering_again_replaces():
    register_policy("mine", nn.Linear)
    register_policy("mine", nn.Identity)
    assert isinstance(build_policy({"builder": "mine", "kwargs": {}}), nn.Identity)
