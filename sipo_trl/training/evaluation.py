"""Rolling a finished policy out: what it achieves, and the states that it leaves behind."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from tensordict.nn import TensorDictModuleBase
from tensordict.utils import NestedKey
from torch import Tensor
from torchrl.envs import EnvBase

from sipo_trl.envs.episodes import Episodes, play, played, summarize
from sipo_trl.measures import StateDistanceMeasure
from sipo_trl.transforms import StateDistanceReward

CRITIC_UPDATES = 200  # enough for a Wasserstein critic's clipped weights to reach their bounds


@dataclass
class Evaluation(Episodes):
    """Whole episodes of one policy, and how far they are from the archived ones.

    Attributes:
        distances: from each archived policy [J].
    """

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
        measure: the distance to archived policies; one that learns learns these episodes first.
        horizon: the longest an episode can be.
        exploration: ``"mean"`` takes the most likely actions, ``"sample"`` draws them.
        max_states: see :func:`~sipo_trl.envs.episodes.summarize`, as for the columns.
        columns: further entries of each step that are kept beside the states.
    """
    rollout = play(env, policy, horizon=horizon, exploration=exploration)
    within = played(rollout)
    teach(measure, rollout["next", "diversity_state"][within])
    reward = StateDistanceReward(measure)(rollout)["next", "intrinsic_reward"]
    totals = (reward * within.unsqueeze(-1)).sum(1).mean(0)
    distances = measure.distance(totals, within.sum(1, keepdim=True).float().mean(0))
    episodes = summarize(rollout, max_states=max_states, columns=columns)
    episodes.columns["states"] = measure.view(episodes.columns["states"])
    return Evaluation(**vars(episodes), distances=distances)


def teach(measure: StateDistanceMeasure, states: Tensor) -> None:
    """Lets a measure that learns tell states [n, *F] from the archived ones; others are as before.

    Training leaves critics that know the last policies of one attempt. Fresh ones that have
    learned until they are done give every policy the same chance.
    """
    if any(True for _ in measure.parameters()):
        for _ in range(CRITIC_UPDATES):
            measure.update(states)
