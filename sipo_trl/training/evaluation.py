"""Rolling a finished policy out: what it achieves, and the states that it leaves behind."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from tensordict import TensorDict
from tensordict.nn import TensorDictModuleBase
from tensordict.utils import NestedKey
from torch import Tensor
from torchrl.envs import EnvBase
from torchrl.envs.utils import ExplorationType, set_exploration_type

from sipo_trl.measures import StateDistanceMeasure
from sipo_trl.transforms import StateDistanceReward

EXPLORATION = {"mean": ExplorationType.DETERMINISTIC, "sample": ExplorationType.RANDOM}


@dataclass
class Evaluation:
    """Whole episodes of one policy.

    Attributes:
        columns: one row per visited state [n], ready for an archive: ``states`` (the measure's
            view of them), ``step``, ``episode``, and the episode's ``return`` and ``success``.
        returns: task return of each episode [E].
        success: of each episode [E], bool.
        lengths: number of steps of each episode [E].
        distances: mean intrinsic return against each archived policy [J].
    """

    columns: TensorDict
    returns: Tensor
    success: Tensor
    lengths: Tensor
    distances: Tensor

    @property
    def frames(self) -> int:
        """Environment steps that it took."""
        return int(self.lengths.sum())

    def metrics(self) -> dict[str, float | list[float]]:
        """The figures that are kept with the policy."""
        return {
            "return": self.returns.mean().item(),
            "return_std": self.returns.std(correction=0).item(),
            "success": self.success.float().mean().item(),
            "episode_length": self.lengths.float().mean().item(),
            "distances": self.distances.tolist(),
        }


@torch.no_grad()
def evaluate(
    env: EnvBase,
    policy: TensorDictModuleBase,
    measure: StateDistanceMeasure,
    *,
    horizon: int,
    exploration: str = "mean",
    max_states: int | None = None,
    columns: Sequence[NestedKey] = (),
) -> Evaluation:
    """Plays one episode in each copy of an environment.

    Args:
        env: [E] copies.
        policy: what acts.
        measure: the distance to archived policies.
        horizon: the longest an episode can be.
        exploration: ``"mean"`` takes the most likely actions, ``"sample"`` draws them.
        max_states: at most about so many states are kept, evenly over the episodes; each
            episode's last state always is.
        columns: further entries of each step that are kept beside the states.
    """
    with set_exploration_type(EXPLORATION[exploration]):
        rollout = env.rollout(horizon, policy, break_when_any_done=False, break_when_all_done=True)
    following = StateDistanceReward(measure)(rollout)["next"]
    done = following["done"].squeeze(-1)
    played = done.cumsum(1) - done.long() == 0  # up to and with the first end
    lengths = played.sum(1)
    success = (following["success"].squeeze(-1) & played).any(1)
    returns = (following["reward"].squeeze(-1) * played).sum(1)
    distances = (following["intrinsic_reward"] * played.unsqueeze(-1)).sum(1).mean(0)

    step = torch.arange(played.shape[1], device=played.device).expand_as(played)
    stride = 1 if max_states is None else max(1, -(-int(lengths.sum()) // max_states))
    kept = played & ((step % stride == 0) | (step == lengths.unsqueeze(1) - 1))
    episode = torch.arange(len(played), device=played.device).unsqueeze(1).expand_as(played)
    data = TensorDict(
        {
            "states": measure.view(following["diversity_state"][kept]),
            "step": step[kept],
            "episode": episode[kept],
            "return": returns.unsqueeze(1).expand_as(played)[kept],
            "success": success.unsqueeze(1).expand_as(played)[kept],
        }
    ).auto_batch_size_(1)
    for key in columns:
        data[key] = following.get(key)[kept]
    return Evaluation(data, returns, success, lengths, distances)
