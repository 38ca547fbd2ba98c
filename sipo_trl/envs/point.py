"""The mechanics that the small analysis environments share: a point, a clock, a goal."""

from abc import abstractmethod

import torch
from tensordict import TensorDict, TensorDictBase
from torch import Tensor
from torchrl.data import Composite, TensorSpec, Unbounded
from torchrl.envs import EnvBase

from sipo_trl.envs.specs import flag_spec, set_reward_and_ends


class PointEnv(EnvBase):
    """Batch-locked environment whose copies each move one point from the origin to a goal.

    Everything that an environment reports follows from two buffers, ``position`` [*, 2] and
    ``step_count`` [*, 1]; so ``state_dict`` and ``load_state_dict`` save and restore it exactly.
    Both are replaced at each step, never written in place, so that a ``state_dict`` keeps its
    moment while the environment goes on.

    The keys are ``observation``, ``diversity_state`` [*, 2] (the position), ``success`` [*, 1],
    ``reward`` (1 on success), ``terminated`` (on success), ``truncated`` (after ``horizon``
    steps) and ``done``. There is no randomness, so ``set_seed`` changes nothing.

    Args:
        horizon: steps after which an episode is truncated.
        action_spec: actions of the whole batch.
        observation_spec: what :meth:`_observe` returns.
        batch_size: number of copies, as a shape.
        device: where the copies live.
    """

    position: Tensor
    step_count: Tensor

    def __init__(
        self,
        *,
        horizon: int,
        action_spec: TensorSpec,
        observation_spec: dict[str, TensorSpec],
        batch_size: torch.Size,
        device: torch.device | str | None,
    ) -> None:
        super().__init__(batch_size=batch_size, device=device)
        if horizon < 1:
            raise ValueError(f"horizon is {horizon}: give the number of steps, at least 1.")
        self.horizon = horizon
        self.register_buffer("position", torch.zeros(*batch_size, 2, device=device))
        count = torch.zeros(*batch_size, 1, dtype=torch.int64, device=device)
        self.register_buffer("step_count", count)

        self.action_spec = action_spec
        self.observation_spec = Composite(
            **observation_spec,
            diversity_state=Unbounded((*batch_size, 2), device=device),
            success=flag_spec(self),
            shape=batch_size,
            device=device,
        )
        set_reward_and_ends(self)

    @abstractmethod
    def _move(self, action: Tensor) -> Tensor:
        """The positions [*, 2] that the actions lead to."""

    @abstractmethod
    def _observe(self) -> dict[str, Tensor]:
        """The environment's own observations, with ``success`` [*, 1] among them."""

    def _step(self, tensordict: TensorDictBase) -> TensorDictBase:
        position = self._move(tensordict.get("action"))
        step_count = self.step_count + 1
        # TorchRL marks with "_step" which copies move, where others have finished.
        moving = tensordict.get("_step", None)
        if moving is not None:
            moving = moving.view(self.step_count.shape)
            position = torch.where(moving, position, self.position)
            step_count = torch.where(moving, step_count, self.step_count)
        self.position, self.step_count = position, step_count
        report = self._report()
        reward = report["success"] if moving is None else report["success"] & moving
        report["reward"] = reward.to(position.dtype)
        return TensorDict(report, batch_size=self.batch_size, device=self.device)

    def _reset(self, tensordict: TensorDictBase | None = None, **_: object) -> TensorDictBase:
        reset = None if tensordict is None else tensordict.get("_reset", None)
        if reset is None:
            self.position = torch.zeros_like(self.position)
            self.step_count = torch.zeros_like(self.step_count)
        else:
            reset = reset.view(self.step_count.shape)
            self.position = self.position.masked_fill(reset, 0)
            self.step_count = self.step_count.masked_fill(reset, 0)
        return TensorDict(self._report(), batch_size=self.batch_size, device=self.device)

    def _report(self) -> dict[str, Tensor]:
        """All outputs but the reward, from the current positions and step counts."""
        report = self._observe()
        # Copies, because the caller may write to what it gets.
        report["diversity_state"] = self.position.clone()
        report["terminated"] = report["success"].clone()
        report["truncated"] = self.step_count >= self.horizon
        report["done"] = report["terminated"] | report["truncated"]
        return report

    def _set_seed(self, seed: int | None) -> None:
        """Nothing to seed: the dynamics are deterministic."""
