"""Playing whole episodes of a policy, and what is kept of them."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from tensordict import TensorDict, TensorDictBase
from tensordict.nn import TensorDictModuleBase
from tensordict.utils import NestedKey
from torch import Tensor
from torchrl.envs import EnvBase, TransformedEnv
from torchrl.envs.utils import ExplorationType, set_exploration_type
from torchrl.modules.utils import get_env_transforms_from_module

EXPLORATION = {"mean": ExplorationType.DETERMINISTIC, "sample": ExplorationType.RANDOM}


@dataclass
class Episodes:
    """Whole episodes of one policy.

    Attributes:
        columns: one row per visited state [n], ready for an archive: ``states``, ``step``,
            ``episode``, and the episode's ``return`` and ``success``.
        returns: task return of each episode [E].
        success: of each episode [E], bool.
        lengths: number of steps of each episode [E].
    """

    columns: TensorDict
    returns: Tensor
    success: Tensor
    lengths: Tensor


@torch.no_grad()
def play(
    env: EnvBase, policy: TensorDictModuleBase, *, horizon: int, exploration: str = "mean"
) -> TensorDictBase:
    """Play one episode in each copy of an environment.

    Args:
        env: [E] copies.
        policy: what acts.
        horizon: the longest an episode can be.
        exploration: ``"mean"`` takes the most likely actions, ``"sample"`` draws them.

    Returns:
        The roll-out [E, T]; what follows an episode's end (see :func:`played`) means nothing.

    Examples:
        >>> from sipo_trl.envs import GridWorld, paper_policies
        >>> play(GridWorld(batch_size=[3]), paper_policies()["pi3"], horizon=8).batch_size
        torch.Size([3, 8])
    """
    with set_exploration_type(EXPLORATION[exploration]):
        return env.rollout(horizon, policy, break_when_any_done=False, break_when_all_done=True)


def played(rollout: TensorDictBase) -> Tensor:
    """Which steps of a roll-out [E, T] belong to each copy's first episode, its end included."""
    done = rollout["next", "done"].squeeze(-1)
    return done.cumsum(1) - done.long() == 0


def summarize(
    rollout: TensorDictBase,
    *,
    max_states: int | None = None,
    columns: Sequence[NestedKey] = (),
) -> Episodes:
    """Bring a roll-out into the form of an archive's entry.

    Args:
        rollout: the steps [E, T] of :func:`play`.
        max_states: at most about so many states are kept, evenly over the episodes; each
            episode's last state always is.
        columns: further entries of each step that are kept beside the states.

    Examples:
        >>> from sipo_trl.envs import GridWorld, paper_policies
        >>> rollout = play(GridWorld(batch_size=[3]), paper_policies()["pi3"], horizon=8)
        >>> summarize(rollout, max_states=12).columns["step"].tolist()
        [0, 2, 4, 6, 7, 0, 2, 4, 6, 7, 0, 2, 4, 6, 7]
    """
    following, mask = rollout["next"], played(rollout)
    lengths = mask.sum(1)
    success = (following["success"].squeeze(-1) & mask).any(1)
    returns = (following["reward"].squeeze(-1) * mask).sum(1)

    step = torch.arange(mask.shape[1], device=mask.device).expand_as(mask)
    stride = 1 if max_states is None else max(1, -(-int(lengths.sum()) // max_states))
    kept = mask & ((step % stride == 0) | (step == lengths.unsqueeze(1) - 1))
    episode = torch.arange(len(mask), device=mask.device).unsqueeze(1).expand_as(mask)
    data = TensorDict(
        {
            "states": following["diversity_state"][kept],
            "step": step[kept],
            "episode": episode[kept],
            "return": returns.unsqueeze(1).expand_as(mask)[kept],
            "success": success.unsqueeze(1).expand_as(mask)[kept],
        }
    ).auto_batch_size_(1)
    for key in columns:
        data[key] = following.get(key)[kept]
    return Episodes(data, returns, success, lengths)


def without_practice(steps: TensorDictBase) -> TensorDictBase:
    """Those steps that belong to the task; all as they are where nothing else is practised.

    Args:
        steps: what followed in each step of a batch [B, T].

    Returns:
        The steps [n] that are not marked as ``practice``, or [B, T].

    Examples:
        >>> steps = TensorDict({"practice": torch.tensor([[[True], [False]]])}, [1, 2])
        >>> without_practice(steps).batch_size
        torch.Size([1])
    """
    practice = steps.get("practice", None)
    return steps if practice is None else steps[~practice.squeeze(-1)]


def remembering(env: EnvBase, policy: TensorDictModuleBase) -> EnvBase:
    """The environment with what a recurrent policy needs to remember; as it is for others."""
    # TorchRL would make every policy's environment tell where episodes begin.
    if "is_init" not in policy.in_keys:
        return env
    memory = get_env_transforms_from_module(policy)
    # TorchRL flattens an environment around another, but not without a warning.
    if isinstance(env, TransformedEnv):
        return env.append_transform(memory)
    return TransformedEnv(env, memory)
