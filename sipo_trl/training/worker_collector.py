"""A collector for environments whose workers decide by themselves."""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

import torch
from tensordict import TensorDictBase
from tensordict.nn import TensorDictModuleBase
from torch import Tensor, nn
from torchrl.envs import CatFrames, EnvBase, TransformedEnv
from torchrl.modules import set_recurrent_mode

from sipo_trl.envs.football import FootballEnv
from sipo_trl.envs.football.matches import ACTIONS
from sipo_trl.models import Actor, MaskedGRU, plain_layers, plain_weights


class WorkerCollector:
    """Lets the processes that play the matches run the policy, each for itself.

    A batch is what :class:`~sipo_trl.training.ResumableCollector` would have collected. The workers
    choose the actions, from the scores of a network without torch; what is learned from, the
    probabilities, hidden states and stacked frames, is computed here for all steps at once. As
    there, ``state_dict`` holds the matches under way.

    Args:
        env: football [N], perhaps with stacked frames.
        actor: what decides.
        critic: whose hidden states are needed too, if it is recurrent.

    Keyword Args:
        frames_per_batch: steps of all copies.

    Raises:
        ValueError: if this is another environment, or a policy that workers cannot run.
    """

    def __init__(
        self,
        env: EnvBase,
        actor: Actor,
        critic: TensorDictModuleBase,
        *,
        frames_per_batch: int,
    ) -> None:
        self.env = env.base_env if isinstance(env, TransformedEnv) else env
        if not isinstance(self.env, FootballEnv):
            raise ValueError(
                f"The workers of {type(self.env).__name__} cannot decide by themselves: set "
                "collector.decide_in_workers=false."
            )
        self.actor, self.critic = actor, critic
        copies, agents = self.env.batch_size, self.env.agents
        steps = frames_per_batch // copies.numel()
        self.env.let_workers_decide(plain_layers(actor), steps=steps)
        self._noise_shape = *copies, steps, agents, len(ACTIONS)
        # What the first steps of a batch need of the one before.
        gru = _memory_of(critic)
        size = 0 if gru is None else gru.cell.hidden_size
        self._critic_memory = torch.zeros(*copies, agents, size, device=self.env.device)
        stack = max((part.N for part in env.modules() if isinstance(part, CatFrames)), default=1)
        state = self.env.observation_spec["diversity_state"].zero()
        self._frames = state.unsqueeze(1).repeat_interleave(stack - 1, 1)
        self._starts = torch.zeros_like(self._frames[..., 0], dtype=torch.bool)

    @torch.no_grad()
    def next(self) -> TensorDictBase:
        """One batch [N, T]."""
        memory = self.env.memory.to(self.env.device)
        # The best of scores with Gumbel noise is distributed as their softmax says.
        noise = -torch.empty(self._noise_shape).exponential_().log_()
        batch = self.env.play(plain_weights(self.actor), noise)
        scores, sampler = self.actor[0], self.actor[-1]
        _run(scores, batch, memory)
        action = batch[sampler.out_keys[0]]
        batch[sampler.log_prob_keys[0]] = sampler.get_dist(batch).log_prob(action)
        if _memory_of(self.critic) is not None:
            self._critic_memory = _run(self.critic, batch, self._critic_memory)
        return self._stack(batch)

    def __iter__(self) -> Iterator[TensorDictBase]:
        """One batch after another, without end."""
        while True:
            yield self.next()

    def state_dict(self) -> OrderedDict[str, Any]:
        """The matches, and what the next batch needs of the last one."""
        return OrderedDict(
            env=deepcopy(self.env.state_dict()),
            critic_memory=self._critic_memory.clone(),
            frames=self._frames.clone(),
            starts=self._starts.clone(),
        )

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continues where the collector that gave this state stood."""
        self.env.load_state_dict(state_dict["env"])
        self._critic_memory = state_dict["critic_memory"]
        self._frames, self._starts = state_dict["frames"], state_dict["starts"]

    def shutdown(self) -> None:
        """Ends the workers."""
        self.env.close()

    def _stack(self, batch: TensorDictBase) -> TensorDictBase:
        """Joins each diversity state with those before it, as ``CatFrames`` does step by step."""
        before = self._frames.shape[1]
        frames = torch.cat([self._frames, batch["diversity_state"]], 1)
        starts = torch.cat([self._starts, batch["is_init"].squeeze(-1)], 1)
        self._frames, self._starts = (
            part[:, part.shape[1] - before :] for part in (frames, starts)
        )
        place = torch.arange(frames.shape[1], device=frames.device)
        first = torch.where(starts, place, 0).cummax(1).values
        back = torch.arange(before, -1, -1, device=frames.device)
        source = torch.maximum(place.unsqueeze(-1) - back, first.unsqueeze(-1))[:, before:]
        copy = torch.arange(len(frames), device=frames.device).view(-1, 1, 1)
        stacked = frames[copy, source].flatten(-2)
        size = frames.shape[-1]
        following = torch.cat([stacked[..., size:], batch["next", "diversity_state"]], -1)
        batch["diversity_state"], batch["next", "diversity_state"] = stacked, following
        return batch


def _memory_of(network: nn.Module) -> MaskedGRU | None:
    return next((part for part in network.modules() if isinstance(part, MaskedGRU)), None)


def _run(network: TensorDictModuleBase, batch: TensorDictBase, memory: Tensor) -> Tensor:
    """Runs a network along time and writes all hidden states.

    Args:
        network: recurrent or not.
        batch: the steps [N, T].
        memory: the hidden states before the first step [N, A, H].

    Returns:
        Those after the last step.
    """
    gru = _memory_of(network)
    if gru is None:
        network(batch)
        return memory
    key = gru.in_keys[1]
    hidden = memory.unsqueeze(1).repeat_interleave(batch.shape[1], 1)
    batch[key] = hidden
    with set_recurrent_mode(True):
        network(batch)
    after = batch.get(("next", key))
    batch[key] = torch.cat([memory.unsqueeze(1), after[:, :-1]], 1).masked_fill(
        batch["is_init"].unsqueeze(-1), 0
    )
    return after[:, -1].clone()
