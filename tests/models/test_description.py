from __future__ import annotations

import json

import pytest

from sipo_trl.models import Action, Network, Observation
from sipo_trl.models.description import as_json, as_key


@pytest.mark.parametrize("key", ["action", ("agents", "action"), ("a", "b", "c")])
def test_keys_survive_json(key):
    assert as_key(json.loads(json.dumps(key))) == key


def test_sequences_of_any_kind_describe_the_same_network():
    assert Network(hidden=(32, 16)) == Network(hidden=[32, 16])
    assert Observation(key=["a", "b"], shape=(4,)) == Observation(key=("a", "b"), shape=[4])


def test_what_json_cannot_hold_is_refused():
    with pytest.raises(ValueError, match="JSON"):
        as_json({"low": float("-inf")})
    with pytest.raises(TypeError, match="JSON"):
        as_json({"network": object()})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Network(activation="gelu"), r"activation is 'gelu'; choose one of \['tanh'"),
        (lambda: Action(key="action", kind="binary", size=2), "kind is 'binary'"),
        (lambda: Observation(key="image", shape=[8, 8]), "'image' has shape .8, 8., but"),
        (lambda: Observation(key="state", shape=[8], scope="all"), "scope is 'all'"),
    ],
)
def test_mistakes_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()
