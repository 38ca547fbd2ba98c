"""What the humanoids of Isaac's two engines have in common."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from tensordict import TensorDict, TensorDictBase
from torch import Tensor
from torchrl.envs import EnvBase

from sipo_trl.envs.humanoid.task import DIVERSITY, JOINTS
from sipo_trl.envs.locomotion.specs import set_motion_specs


class IsaacHumanoidEnv(EnvBase):
    """Batch-locked environment around an engine that starts finished copies anew by itself.

    It gives the keys of :class:`~sipo_trl.envs.humanoid.HumanoidEnv`. No engine of Isaac's can
    save its state: after ``load_state_dict`` all episodes that were under way are truncated, at
    the last observation that is known, and new ones begin.

    Args:
        observation_size: number of observations F, of which the first 54 are the
            ``diversity_state``.

    Keyword Args:
        batch_size: number of copies [N].
        device: where the tensors live.
    """

    observation: Tensor
    torque: Tensor
    terminated: Tensor
    truncated: Tensor

    def __init__(
        self, observation_size: int, *, batch_size: Sequence[int], device: torch.device | str
    ) -> None:
        shape = torch.Size(batch_size)
        if len(shape) != 1:
            raise ValueError(f"batch_size is {list(shape)}: give the number of copies, as [N].")
        super().__init__(batch_size=shape, device=device)
        self._interrupted = False
        set_motion_specs(
            self,
            observations=observation_size,
            diversity=DIVERSITY.stop,
            actuators=JOINTS,
            action_bound=1.0,
        )
        for name in ("observation", "torque"):
            self.register_buffer(name, self.observation_spec[name].zero())
        for name in ("terminated", "truncated"):
            self.register_buffer(name, self.full_done_spec[name].zero())

    def interrupt(self) -> None:
        """Truncates all episodes in the next step, because the engine no longer knows them."""
        self._interrupted = True

    def load_state_dict(self, state_dict: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
        """Restores what was reported last; the episodes themselves are lost."""
        self.interrupt()
        return super().load_state_dict(state_dict, *args, **kwargs)

    @abstractmethod
    def _advance(self, action: Tensor) -> dict[str, Tensor]:
        """Moves all copies; returns the new buffers, and the ``reward`` [N, 1]."""

    @abstractmethod
    def _begin(self, reset: Tensor | None) -> dict[str, Tensor]:
        """Starts the marked copies [N, 1], or all, anew; returns the new buffers."""

    def _step(self, tensordict: TensorDictBase) -> TensorDictBase:
        if self._interrupted:
            self._interrupted = False
            self.truncated = torch.ones_like(self.truncated)
            return self._report(reward=self.reward_spec.zero())
        new = self._advance(tensordict.get("action").clamp(-1, 1))
        reward = new.pop("reward")
        # TorchRL marks with "_step" which copies move, where others have finished. The engine
        # moves them all; what it does with the others is not reported.
        moving = tensordict.get("_step", None)
        if moving is not None:
            moving = moving.view(reward.shape)
            new = {name: torch.where(moving, new[name], self._buffers[name]) for name in new}
            reward = reward.masked_fill(~moving, 0)
        self._buffers.update(new)
        return self._report(reward=reward)

    def _reset(self, tensordict: TensorDictBase | None = None, **_: object) -> TensorDictBase:
        reset = None if tensordict is None else tensordict.get("_reset", None)
        if reset is None:
            self._interrupted = False
        else:
            reset = reset.view(self.terminated.shape)
        self._buffers.update(self._begin(reset))
        for name in ("terminated", "truncated"):
            flag = self._buffers[name]
            self._buffers[name] = torch.zeros_like(flag) if reset is None else flag & ~reset
        return self._report()

    def _report(self, **more: Tensor) -> TensorDictBase:
        """All outputs, from the buffers."""
        report = {
            # Copies, because the caller may write to what it gets.
            "observation": self.observation.clone(),
            "diversity_state": self.observation[:, DIVERSITY].clone(),
            "torque": self.torque.clone(),
            "terminated": self.terminated.clone(),
            "truncated": self.truncated.clone(),
            "done": self.terminated | self.truncated,
            "success": self.truncated & ~self.terminated,
            **more,
        }
        return TensorDict(report, batch_size=self.batch_size, device=self.device)
