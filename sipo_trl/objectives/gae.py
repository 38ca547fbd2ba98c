"""Generalised advantage estimation for critics with several value heads."""

from dataclasses import dataclass

import torch
from tensordict import TensorDictBase
from tensordict.nn import TensorDictModule, dispatch
from tensordict.utils import NestedKey
from torch import Tensor
from torchrl.modules import ValueNorm
from torchrl.objectives.value import GAE


class MultiHeadGAE(GAE):
    """GAE for ``1 + J`` rewards at once, exact for each head.

    Reads ``("next", "reward")``, to which ``("next", "intrinsic_reward")`` is joined when the
    batch holds one, and writes ``advantage`` and ``value_target`` with one entry per head
    [*B, T, H], or [*B, T, A, H] when the critic answers per agent. Rewards and episode ends that
    the team shares are broadcast to the agents. Truncated episodes are bootstrapped, terminated
    ones are not, and no advantage leaks across an episode's end.

    The recursion is a plain loop over time, in place, on tensors with time in front: with episode
    ends in the batch it is several times as fast as TorchRL's vectorised form
    (``benchmarks/components.py``), and it reads nothing on the host.

    A recurrent critic is asked in step mode with the hidden states stored in the batch, at
    ``hidden`` for the root and ``("next", hidden)`` for the next observations, which is exact and
    needs no loop: let the collector's policy run the critic too.

    Keyword Args:
        gamma: discount, one for all heads or one per head [H].
        lmbda: GAE's lambda, one for all heads or one per head [H].
        value_network: critic that writes ``state_value`` [*, H]; ``None`` if the batch already
            holds ``state_value`` and ``("next", "state_value")``.
        value_norm: normaliser of the critic's targets. If given, the critic predicts normalised
            values, which are brought back to the rewards' scale here (the MAPPO form).
        intrinsic_norm: running normaliser [J] whose scale divides each intrinsic reward before
            the recursion; updated here in training mode. The raw rewards stay in the batch for
            the dual step.
        bootstrap_intrinsic: whether intrinsic heads go on after a truncation, as the task's does.
            Not for measures that pay at an episode's last step only: that step ends their return.
        time_dim: where time is in the batch; the dimension named "time" or the last if not given.
        device: where the buffers live.

    Examples:
        >>> from tensordict import TensorDict
        >>> batch = TensorDict({
        ...     "state_value": torch.zeros(1, 2, 2),
        ...     "next": {
        ...         "state_value": torch.zeros(1, 2, 2),
        ...         "reward": torch.tensor([[[0.0], [1.0]]]),
        ...         "intrinsic_reward": torch.tensor([[[4.0], [0.0]]]),
        ...         "done": torch.tensor([[[False], [True]]]),
        ...         "terminated": torch.tensor([[[False], [True]]]),
        ...     },
        ... }, [1, 2])
        >>> MultiHeadGAE(gamma=0.5, lmbda=1.0, value_network=None)(batch)["advantage"]
        tensor([[[0.5000, 4.0000],
                 [1.0000, 0.0000]]])
    """

    @dataclass
    class _AcceptedKeys(GAE._AcceptedKeys):
        """Where things are in a batch; all but the first three are read below ``"next"``.

        GAE's own keys are repeated because its ``set_keys`` does not look at inherited fields.
        """

        advantage: NestedKey = "advantage"
        value_target: NestedKey = "value_target"
        value: NestedKey = "state_value"
        reward: NestedKey = "reward"
        intrinsic_reward: NestedKey = "intrinsic_reward"
        done: NestedKey = "done"
        terminated: NestedKey = "terminated"

    default_keys = _AcceptedKeys
    tensor_keys: _AcceptedKeys

    def __init__(
        self,
        *,
        gamma: float | Tensor,
        lmbda: float | Tensor,
        value_network: TensorDictModule | None,
        value_norm: ValueNorm | None = None,
        intrinsic_norm: ValueNorm | None = None,
        bootstrap_intrinsic: bool = True,
        time_dim: int | None = None,
        device: torch.device | None = None,
    ) -> None:
        super().__init__(
            gamma=gamma, lmbda=lmbda, value_network=value_network, time_dim=time_dim, device=device
        )
        self.value_norm = value_norm
        self.intrinsic_norm = intrinsic_norm
        self.bootstrap_intrinsic = bootstrap_intrinsic

    @dispatch
    def forward(
        self,
        tensordict: TensorDictBase,
        *,
        params: TensorDictBase | None = None,
        target_params: TensorDictBase | None = None,
        time_dim: int | None = None,
    ) -> TensorDictBase:
        """Writes ``advantage`` and ``value_target`` [*B, T, (A,) H] into a batch [*B, T].

        Args:
            tensordict: the batch.
            params: parameters to call the value network with, for functional use.
            target_params: parameters for the next observations; ``params`` if not given.
            time_dim: overrides the constructor's.
        """
        if tensordict.ndim < 1:
            raise ValueError(
                "MultiHeadGAE needs a batch with a time dimension [*B, T], got batch size "
                f"{list(tensordict.batch_size)}."
            )
        with torch.no_grad():
            value, next_value = self._values(tensordict, params, target_params)
            heads = value.shape[-1]
            reward = self._like_value(self._head_rewards(tensordict), value, "reward", heads)
            done = tensordict.get(("next", self.tensor_keys.done))
            terminated = tensordict.get(("next", self.tensor_keys.terminated), default=done)
            done = self._like_value(done, value, "done", 1)
            terminated = self._like_value(terminated, value, "terminated", 1)
            if not self.bootstrap_intrinsic:
                terminated = torch.cat([terminated, done.expand(*done.shape[:-1], heads - 1)], -1)
            time_dim = self._get_time_dim(time_dim, tensordict)
            advantage = self._recursion(reward, value, next_value, done, terminated, time_dim)
        tensordict.set(self.tensor_keys.advantage, advantage)
        tensordict.set(self.tensor_keys.value_target, advantage + value)
        return tensordict

    def value_estimate(
        self,
        tensordict: TensorDictBase,
        params: TensorDictBase | None = None,
        target_params: TensorDictBase | None = None,
        time_dim: int | None = None,
        **kwargs: object,
    ) -> Tensor:
        """Returns the value targets [*B, T, (A,) H] and leaves the batch as it is."""
        estimate = self.forward(
            tensordict.copy(), params=params, target_params=target_params, time_dim=time_dim
        )
        return estimate.get(self.tensor_keys.value_target)

    def _values(
        self,
        tensordict: TensorDictBase,
        params: TensorDictBase | None,
        target_params: TensorDictBase | None,
    ) -> tuple[Tensor, Tensor]:
        """Values of the root and of the next observations, on the rewards' scale."""
        key = self.tensor_keys.value
        if self.value_network is not None:
            value = self._call_critic(tensordict, params)
            next_params = params if target_params is None else target_params
            next_value = self._call_critic(self._next_inputs(tensordict), next_params)
            tensordict.set(key, value)
            tensordict.set(("next", key), next_value)
        else:
            value, next_value = tensordict.get(key), tensordict.get(("next", key))
        if value is None or next_value is None:
            raise KeyError(
                f"Without a value_network the batch must hold {key!r} and {('next', key)!r}: "
                "run the critic on both, or give it to MultiHeadGAE."
            )
        if self.value_norm is not None:
            value = self.value_norm.denormalize(value)
            next_value = self.value_norm.denormalize(next_value)
        return value, next_value

    def _call_critic(self, inputs: TensorDictBase, params: TensorDictBase | None) -> Tensor:
        inputs = inputs.select(*self.value_network.in_keys, strict=False)
        if params is None:
            return self.value_network(inputs).get(self.tensor_keys.value)
        with params.to_module(self.value_network):
            return self.value_network(inputs).get(self.tensor_keys.value)

    def _next_inputs(self, tensordict: TensorDictBase) -> TensorDictBase:
        """The critic's inputs one step later; what the environment does not repeat stays."""
        keys = self.value_network.in_keys
        inputs = tensordict.select(*keys, strict=False)
        inputs.update(tensordict.get("next").select(*keys, strict=False))
        for key in keys:
            if (key if isinstance(key, str) else key[-1]) == "is_init":
                # The last observation of an episode belongs to it: its hidden state is not reset.
                inputs.set(key, torch.zeros_like(inputs.get(key)))
        return inputs

    def _head_rewards(self, tensordict: TensorDictBase) -> Tensor:
        """The rewards of all heads [*B, T, (A,) H], intrinsic ones scaled."""
        reward = tensordict.get(("next", self.tensor_keys.reward))
        intrinsic = tensordict.get(("next", self.tensor_keys.intrinsic_reward), default=None)
        if intrinsic is None:
            return reward
        if self.intrinsic_norm is not None:
            if self.training:
                self.intrinsic_norm.update(intrinsic)
            intrinsic = intrinsic / self.intrinsic_norm.scale()
        if intrinsic.ndim < reward.ndim:  # one distance for the team, one task reward per agent
            intrinsic = intrinsic.unsqueeze(-2).expand(*reward.shape[:-1], -1)
        elif reward.ndim < intrinsic.ndim:
            reward = reward.unsqueeze(-2).expand(*intrinsic.shape[:-1], -1)
        return torch.cat([reward, intrinsic], -1)

    @staticmethod
    def _like_value(signal: Tensor, value: Tensor, name: str, width: int) -> Tensor:
        """Lets a team's signal [*B, T, width] stand beside values [*B, T, A, H]."""
        if signal.ndim == value.ndim - 1:
            signal = signal.unsqueeze(-2)
        if signal.ndim != value.ndim or signal.shape[-1] != width:
            raise ValueError(
                f"{name} of shape {list(signal.shape)} does not fit values of shape "
                f"{list(value.shape)}: expected {width} in the last dimension. Rewards have "
                "one entry per value head, the task's first; done and terminated have one in all."
            )
        return signal

    def _recursion(
        self,
        reward: Tensor,
        value: Tensor,
        next_value: Tensor,
        done: Tensor,
        terminated: Tensor,
        time_dim: int,
    ) -> Tensor:
        """``A_t = delta_t + gamma lmbda (1 - done_t) A_{t+1}``, backwards in time, in place."""
        gamma, lmbda = self.gamma.to(value), self.lmbda.to(value)
        # Filled, not multiplied: an engine may give NaN for the observation after the last.
        advantage = reward + gamma * next_value.masked_fill(terminated, 0) - value
        carry = (gamma * lmbda * ~done).movedim(time_dim, 0)
        advantage = advantage.movedim(time_dim, 0).contiguous()
        for t in range(len(advantage) - 2, -1, -1):
            advantage[t].addcmul_(carry[t], advantage[t + 1])
        return advantage.movedim(0, time_dim)
