"""How a policy is rebuilt from plain data: a table of named builders.

An archive stores a policy as its weights and a *recipe*, ``{"builder": name, "kwargs": {...}}``.
The name is looked up here and nowhere else, so that reading somebody's archive never imports or
runs anything that the archive names.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from torch import nn

__all__ = ["build_policy", "register_policy"]

# Resolved on first use: the archive, which needs this table, comes below the models.
_OWN_BUILDERS = {"actor": "sipo_trl.models:build_actor"}
_USER_BUILDERS: dict[str, Callable[..., nn.Module]] = {}


def register_policy(name: str, builder: Callable[..., nn.Module]) -> None:
    """Make a policy builder known by a name, so that archives can rebuild what it builds.

    Args:
        name: the name that recipes use. Registering it again replaces the builder; the names of
            sipo_trl's own builders are taken.
        builder: takes JSON-compatible keyword arguments and returns the module. A class will do.

    Example:
        >>> from torch import nn
        >>> register_policy("linear", nn.Linear)
        >>> build_policy({"builder": "linear", "kwargs": {"in_features": 4, "out_features": 2}})
        Linear(in_features=4, out_features=2, bias=True)
    """
    if name in _OWN_BUILDERS:
        raise ValueError(f"The policy name {name!r} is sipo_trl's own: choose another one.")
    _USER_BUILDERS[name] = builder


def build_policy(spec: Mapping[str, Any]) -> nn.Module:
    """Build a policy, with fresh weights, from its recipe.

    Args:
        spec: ``{"builder": name, "kwargs": {...}}``, the name of a registered builder and the
            keyword arguments that it is called with.

    Returns:
        The module. It carries its recipe as ``policy_spec``, ready to be archived.

    Example:
        >>> from torch import nn
        >>> register_policy("linear", nn.Linear)
        >>> spec = {"builder": "linear", "kwargs": {"in_features": 4, "out_features": 2}}
        >>> build_policy(spec).policy_spec == spec
        True
    """
    if not isinstance(spec, Mapping) or set(spec) != {"builder", "kwargs"}:
        raise ValueError(
            f"The policy recipe must be {{'builder': name, 'kwargs': {{...}}}}, got {spec!r}."
        )
    name, kwargs = spec["builder"], spec["kwargs"]
    if not isinstance(kwargs, Mapping):
        raise ValueError(
            f"The 'kwargs' of the policy builder {name!r} must be a dict, got {kwargs!r}."
        )
    module = _find_builder(name)(**kwargs)
    if not isinstance(module, nn.Module):
        raise TypeError(
            f"The policy builder {name!r} must return an nn.Module, got a {type(module).__name__}."
        )
    # nn.Module declares its attributes as tensors and modules, though any will do.
    module.policy_spec = {"builder": name, "kwargs": dict(kwargs)}  # type: ignore[assignment]
    return module


def _find_builder(name: object) -> Callable[..., nn.Module]:
    if isinstance(name, str) and name in _OWN_BUILDERS:
        module, _, attribute = _OWN_BUILDERS[name].partition(":")
        return getattr(import_module(module), attribute)
    if isinstance(name, str) and name in _USER_BUILDERS:
        return _USER_BUILDERS[name]
    known = ", ".join(sorted({*_OWN_BUILDERS, *_USER_BUILDERS}))
    raise ValueError(
        f"There is no policy builder {name!r} (known: {known}): call "
        "sipo_trl.registry.register_policy(name, builder) before the policy is built."
    )
