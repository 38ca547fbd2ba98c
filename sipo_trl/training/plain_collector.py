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
from sipo_trl.training.compilation import compiled


class PlainCollector:
    """Collects with tensors alone, without TorchRL's data structures around each step.

    A batch is what :class:`~sipo_trl.training.ResumableCollector` would have collected, to the
    bit; probabilities of bounded actions are computed from these, and may differ from it in their
    last digits. As there, ``state_dict`` holds the episodes under way.

    Args:
        env: the bodies [N].
        actor: what decides, by one observation and without a memory.

    Keyword Args:
        frames_per_batch: steps of all copies.
        compile_turns: whether to compile all that is between the physics of two steps, the policy
            included. Numbers then differ in their last digits.

    Examples:
        >>> from sipo_trl.envs import HumanoidEnv
        >>> from sipo_trl.models import make_actor
        >>> env = HumanoidEnv(batch_size=[4], seed=0)
        >>> collector = PlainCollector(env, make_actor(env), frames_per_batch=20)
        >>> collector.next()["action_log_prob"].shape
        torch.Size([4, 5])
    """

    def __init__(
        self,
        env: LocomotionEnv,
        actor: Actor,
        *,
        frames_per_batch: int,
        compile_turns: bool = False,
    ) -> None:
        self.env, self.actor = env, actor
        self.steps = frames_per_batch // env.batch_size.numel()
        if compile_turns:
            if not env.simulator.begins_with_tensors:
                raise ValueError(
                    f"The start of an episode of {type(env).__name__} cannot be compiled: leave "
                    "collector.compile out."
                )
            env.turn = compiled(env.turn)  # type: ignore[method-assign]  # of this one alone

    @staticmethod
    def suits(env: EnvBase, actor: Actor) -> bool:
        """Whether such an environment and policy can do with it."""
        return isinstance(env, LocomotionEnv) and actor.in_keys == ["observation"]

    @torch.no_grad()
    def next(self) -> TensorDictBase:
        """One batch [N, T]."""
        sampler, like = self.actor[-1], self.env.action_spec.zero()
        # In the order in which a policy would draw them step by step.
        noise = torch.stack([torch.randn_like(like) for _ in range(self.steps)])
        batch = self.env.play(self._decide, noise)
        batch[sampler.log_prob_key] = sampler.get_dist(batch).log_prob(batch["action"])
        return batch

    def _decide(self, observation: Tensor, noise: Tensor) -> dict[str, Tensor]:
        sampler = self.actor[-1]
        loc, scale = self.actor[0].module(observation)
        # A normal policy's choice is what it would most likely do with a mean that is so far off.
        family = sampler.distribution_class
        shifted = family(loc + scale * noise, scale, **sampler.distribution_kwargs)
        action = shifted.deterministic_sample
        return dict(zip(self.actor[0].out_keys, (loc, scale), strict=True), action=action)

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
