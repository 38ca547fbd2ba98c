"""A collector for environments that make several steps at once."""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

import torch
from tensordict import TensorDictBase
from torch import Tensor
from torchrl.envs import EnvBase

from sipo_trl.envs.locomotion import LocomotionEnv
from sipo_trl.models import Actor


class PlainCollector:
    """Collects with tensors alone, without TorchRL's data structures around each step.

    A batch is what :class:`~sipo_trl.training.ResumableCollector` would have collected, drawn from
    the same random numbers; probabilities are computed for all steps at once, and may differ from
    it in their last digits. As there, ``state_dict`` holds the episodes under way.

    Args:
        env: the bodies [N].
        actor: what decides, by one observation and without a memory.

    Keyword Args:
        frames_per_batch: steps of all copies.

    Examples:
        >>> from sipo_trl.envs import HumanoidEnv
        >>> from sipo_trl.models import make_actor
        >>> env = HumanoidEnv(batch_size=[4], seed=0)
        >>> collector = PlainCollector(env, make_actor(env), frames_per_batch=20)
        >>> collector.next()["action_log_prob"].shape
        torch.Size([4, 5])
    """

    def __init__(self, env: LocomotionEnv, actor: Actor, *, frames_per_batch: int) -> None:
        self.env, self.actor = env, actor
        self.steps = frames_per_batch // env.batch_size.numel()

    @staticmethod
    def suits(env: EnvBase, actor: Actor) -> bool:
        """Whether such an environment and policy can do with it."""
        return isinstance(env, LocomotionEnv) and actor.in_keys == ["observation"]

    @torch.no_grad()
    def next(self) -> TensorDictBase:
        """One batch [N, T]."""
        batch = self.env.play(self._decide, self.steps)
        distribution = self.actor.get_dist(batch)
        batch[self.actor.log_prob_keys[0]] = distribution.log_prob(batch["action"])
        return batch

    def __iter__(self) -> Iterator[TensorDictBase]:
        """One batch after another, without end."""
        while True:
            yield self.next()

    def state_dict(self) -> OrderedDict[str, Any]:
        """The episodes, as they stand."""
        return OrderedDict(env=deepcopy(self.env.state_dict()))

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continues where the collector that gave this state stood."""
        self.env.load_state_dict(state_dict["env"])

    def shutdown(self) -> None:
        """Frees the environment."""
        self.env.close()

    def _decide(self, observation: Tensor) -> Tensor:
        network, sampler = self.actor[0].module, self.actor[-1]
        loc, scale = network(observation)
        return sampler.distribution_class(loc, scale, **sampler.distribution_kwargs).sample()
