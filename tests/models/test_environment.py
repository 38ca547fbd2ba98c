from __future__ import annotations

import pytest
import torch
from torchrl.data import (
    Binary,
    Bounded,
    Categorical,
    Composite,
    MultiCategorical,
    OneHot,
    TensorSpec,
    Unbounded,
)

from sipo_trl.models import Action
from sipo_trl.models.environment import EnvironmentReader


def specs(action: TensorSpec | Composite, *, batch: tuple[int, ...] = ()) -> Composite:
    """An environment's specs around an action at the root, or a whole action specification."""
    actions = action if isinstance(action, Composite) else Composite(action=action, shape=batch)
    return Composite(
        output_spec=Composite(
            full_observation_spec=Composite(observation=Unbounded((*batch, 4)), shape=batch),
            shape=batch,
        ),
        input_spec=Composite(full_action_spec=actions, shape=batch),
        shape=batch,
    )


def team(action: TensorSpec) -> Composite:
    return specs(Composite(agents=Composite(action=action, shape=(7, 3)), shape=(7,)), batch=(7,))


@pytest.mark.parametrize(
    ("spec", "kind", "size", "low", "high"),
    [
        (Bounded([-1.0, 0.0], [1.0, 2.0], shape=(2,)), "continuous", 2, [-1.0, 0.0], [1.0, 2.0]),
        (Unbounded((2,)), "continuous", 2, None, None),
        (Bounded(-torch.inf, 1.0, shape=(2,)), "continuous", 2, None, None),
        (Categorical(4), "categorical", 4, None, None),
        (OneHot(4), "one_hot", 4, None, None),
    ],
)
@pytest.mark.parametrize("batch", [(), (7,)])
def test_single_actions(spec, kind, size, low, high, batch):
    spec = spec.expand(*batch, *spec.shape) if batch else spec
    environment = EnvironmentReader(specs(spec, batch=batch))
    expected = Action(key="action", kind=kind, size=size, low=low, high=high)
    assert environment.action() == expected
    assert environment.agents is None


@pytest.mark.parametrize(
    ("spec", "kind", "size"),
    [
        (Unbounded((7, 3, 2)), "continuous", 2),
        (Categorical(4, shape=(7, 3)), "categorical", 4),
        (MultiCategorical([4, 4, 4]).expand(7, 3), "categorical", 4),
        (OneHot(4, shape=(7, 3, 4)), "one_hot", 4),
    ],
)
def test_group_actions(spec, kind, size):
    environment = EnvironmentReader(team(spec))
    assert environment.action() == Action(key=("agents", "action"), kind=kind, size=size)
    assert environment.agents == 3


def test_bounds_are_read_per_agent():
    low = torch.tensor([[-1.0], [-2.0], [-3.0]]).expand(7, 3, 1)
    action = EnvironmentReader(team(Bounded(low, -low, shape=(7, 3, 1)))).action()
    assert action.low == [[-1.0], [-2.0], [-3.0]]


@pytest.mark.parametrize(
    "spec", [Binary(3), MultiCategorical([2, 2]), Categorical(4, shape=(1,)), Unbounded((2, 2))]
)
def test_unsupported_actions_are_named(spec):
    with pytest.raises(ValueError, match="'action' has"):
        EnvironmentReader(specs(spec)).action()


@pytest.mark.parametrize(
    "spec", [MultiCategorical([4, 4, 5]).expand(7, 3), Binary(3, shape=(7, 3))]
)
def test_unsupported_group_actions_are_named(spec):
    with pytest.raises(ValueError, match="unsupported spec"):
        EnvironmentReader(team(spec)).action()


def test_several_actions_are_refused():
    both = Composite(left=Composite(action=Categorical(2)), right=Composite(action=Categorical(2)))
    with pytest.raises(ValueError, match="one network decides one action"):
        EnvironmentReader(specs(both))


def test_a_group_without_agent_dimension_is_a_single_agent():
    nested = Composite(robot=Composite(action=Unbounded((2,))))
    environment = EnvironmentReader(specs(nested))
    assert environment.agents is None
    assert environment.action().key == ("robot", "action")


def test_missing_observations_are_named():
    with pytest.raises(ValueError, match=r"no observation 'pose', only \['observation'\]"):
        EnvironmentReader(specs(Categorical(2))).observations(["pose"])


def test_scopes_follow_the_keys(team_env):
    environment = EnvironmentReader(team_env())
    keys = [("agents", "observation"), "state"]
    assert [(o.scope, o.shape) for o in environment.observations(keys)] == [
        ("agent", [6]),
        ("root", [7]),
    ]
    assert environment.observations(None, joint=True)[0].scope == "joint"
    assert environment.mask_key() == ("agents", "action_mask")


def test_specs_and_environment_say_the_same(env):
    from_env, from_specs = EnvironmentReader(env), EnvironmentReader(env.specs)
    assert from_env.action() == from_specs.action()
    assert from_env.observations(None) == from_specs.observations(None)
    assert from_env.agents == from_specs.agents


def test_shapes_are_those_of_the_data(env):
    environment = EnvironmentReader(env)
    (observation,) = environment.observations(None)
    team = () if environment.agents is None else (environment.agents,)
    shape = (*env.batch_size, *team, *observation.shape)
    assert env.reset()[observation.key].shape == shape


def test_masks_must_be_boolean(team_env):
    described = team_env().specs.clone().unlock_(recurse=True)
    mask = Unbounded((2, 3, 5))
    described["output_spec", "full_observation_spec", "agents", "action_mask"] = mask
    with pytest.raises(ValueError, match=r"float32, but torch\.bool is needed"):
        EnvironmentReader(described).mask_key()
