"""Policies as plain data: a recipe for the registry, and weights."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from sipo_trl.archive._files import plain
from sipo_trl.archive._tensors import DTYPES
from sipo_trl.archive.error import ArchiveError
from sipo_trl.registry import build_policy


def describe_policy(
    policy: nn.Module | None, spec: Mapping[str, Any] | None
) -> tuple[dict[str, Any] | None, dict[str, Tensor]]:
    """Return a policy's recipe and weights, once they are known to rebuild it."""
    if policy is None:
        if spec is not None:
            raise ArchiveError("There is a policy_spec but no policy: give append the policy too.")
        return None, {}
    spec = getattr(policy, "policy_spec", None) if spec is None else spec
    if spec is None:
        raise ArchiveError(
            f"The policy ({type(policy).__name__}) does not say how to rebuild it: give append a "
            "policy_spec, {'builder': name, 'kwargs': {...}}, or make the policy with "
            "sipo_trl.registry.build_policy."
        )
    recipe = plain(dict(spec), "policy_spec")
    weights = policy.state_dict()
    for name, weight in weights.items():
        if not isinstance(weight, Tensor) or weight.dtype not in DTYPES.values():
            kind = weight.dtype if isinstance(weight, Tensor) else type(weight).__name__
            raise ArchiveError(
                f"The policy's {name!r} is a {kind}: archives hold tensors of "
                f"{', '.join(DTYPES)} only."
            )
    try:
        rebuild_policy(recipe, weights)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ArchiveError(
            f"The policy cannot be archived, for it could not be rebuilt: {error}"
        ) from error
    return recipe, weights


def rebuild_policy(spec: Mapping[str, Any], weights: Mapping[str, Tensor]) -> nn.Module:
    """Build a policy from its recipe and give it exactly these weights, ready for evaluation.

    The random state stays as it was: a run that loads a policy goes on like one that does not.
    """
    with torch.random.fork_rng(devices=[]):
        module = build_policy(spec)
    fresh = module.state_dict()
    if fresh.keys() != weights.keys():
        names = ", ".join(sorted(fresh.keys() ^ weights.keys()))
        raise ValueError(f"the builder {spec['builder']!r} and the weights differ in {names}.")
    for name, weight in weights.items():
        # Copying would cast in silence, and no longer be exact.
        if (fresh[name].dtype, fresh[name].shape) != (weight.dtype, weight.shape):
            raise ValueError(
                f"the builder {spec['builder']!r} makes {name!r} {fresh[name].dtype} "
                f"{list(fresh[name].shape)}, but the weights have {weight.dtype} "
                f"{list(weight.shape)}."
            )
    module.load_state_dict(weights)
    return module.eval()
