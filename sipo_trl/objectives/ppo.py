"""Clipped PPO with a multi-head critic and Lagrange multipliers."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from tensordict import TensorDict, TensorDictBase
from tensordict.nn import ProbabilisticTensorDictSequential, TensorDictModule, dispatch
from tensordict.utils import NestedKey
from torch import Tensor
from torch.distributions import Distribution
from torchrl.modules.distributions.utils import has_analytic_entropy
from torchrl.objectives import ClipPPOLoss

from sipo_trl.objectives.lagrange import LagrangeMultipliers
from sipo_trl.objectives.value_norm import HeadValueNorm


class MultiHeadClipPPOLoss(ClipPPOLoss):
    """TorchRL's ``ClipPPOLoss`` for several rewards at once, with the tricks of MAPPO.

    The advantage [*, (A,) 1 + J] is scalarised with the multipliers and normalised once, after
    the sum (SPEC of SIPO: ``A_0 + alpha sum_j lambda_j A_j``); an advantage with a single head is
    used as it is. The critic's 1 + J heads are trained together, each against its own value
    target, with a symmetric Huber loss and value clipping, both in normalised units.

    Entries whose ``mask`` is false (dead agents) count neither in the losses, nor in the
    statistics of the advantages, nor in those of the value targets. Nothing is read on the host.

    Args:
        actor_network: the policy.
        critic_network: writes ``state_value`` [*, (A,) 1 + J].

    Keyword Args:
        multipliers: what combines the advantages; required if there is more than one head.
        intrinsic_scale: the paper's alpha, the size of intrinsic advantages beside the task's.
        value_norm: normaliser of the value targets, one statistic per head. The critic then
            predicts normalised values: give the same normaliser to :class:`MultiHeadGAE`.
            Updated here, in training mode.
        huber_delta: where the critic's loss turns from squared to linear, in units of its targets.
        clip_value: how far a value may move from the one at collection time, in the critic's own
            units; ``None`` for no clipping.
        clip_epsilon: how far the policy's ratio may move.
        entropy_coeff: weight of the entropy bonus.
        critic_coeff: weight of the critic's loss.
        intrinsic_critic_coeff: weight of each intrinsic head's loss beside the task's. Where heads
            share layers, less than 1 leaves these to the task: what is small in them all is a
            head's own last layer, which an optimiser that normalises gradients does not mind.
        normalize_advantage: ``"combined"`` normalises the weighted sum; ``"per_head"`` each head
            before it (as the published RBF code does) and the sum after it; ``"none"`` nothing.
        advantage_floor: smallest deviation that advantages are divided by. Where rewards are rare
            it keeps an untrained critic's noise from being blown up into a signal.

    Examples:
        >>> from tensordict.nn import NormalParamExtractor, TensorDictModule
        >>> from torchrl.modules import IndependentNormal, ProbabilisticActor
        >>> net = torch.nn.Sequential(torch.nn.Linear(3, 4), NormalParamExtractor())
        >>> actor = ProbabilisticActor(
        ...     TensorDictModule(net, in_keys=["observation"], out_keys=["loc", "scale"]),
        ...     in_keys=["loc", "scale"], distribution_class=IndependentNormal,
        ...     return_log_prob=True,
        ... )
        >>> critic = TensorDictModule(
        ...     torch.nn.Linear(3, 3), in_keys=["observation"], out_keys=["state_value"]
        ... )
        >>> multipliers = LagrangeMultipliers(2, threshold=0.1, initial=1.0)
        >>> loss = MultiHeadClipPPOLoss(actor, critic, multipliers=multipliers)
        >>> batch = actor(TensorDict({"observation": torch.randn(5, 3)}, [5]))
        >>> batch = critic(batch).update(
        ...     {"advantage": torch.randn(5, 3), "value_target": torch.randn(5, 3)}
        ... )
        >>> sorted(k for k in loss(batch.detach()).keys() if k.startswith("loss_"))
        ['loss_critic', 'loss_entropy', 'loss_objective']
    """

    @dataclass
    class _AcceptedKeys(ClipPPOLoss._AcceptedKeys):
        """PPO's keys, and ``mask``: what counts [*, (A), 1] bool; everything if absent."""

        mask: NestedKey = "mask"

    default_keys = _AcceptedKeys
    tensor_keys: _AcceptedKeys

    def __init__(
        self,
        actor_network: ProbabilisticTensorDictSequential,
        critic_network: TensorDictModule,
        *,
        multipliers: LagrangeMultipliers | None = None,
        intrinsic_scale: float = 1.0,
        value_norm: HeadValueNorm | None = None,
        huber_delta: float = 10.0,
        clip_value: float | None = 0.2,
        clip_epsilon: float = 0.2,
        entropy_coeff: float = 0.01,
        critic_coeff: float = 1.0,
        intrinsic_critic_coeff: float = 1.0,
        normalize_advantage: str = "combined",
        advantage_floor: float = 1e-5,
    ) -> None:
        if normalize_advantage not in ("combined", "per_head", "none"):
            raise ValueError(
                "normalize_advantage must be 'combined', 'per_head' or 'none', "
                f"got {normalize_advantage!r}."
            )
        super().__init__(
            actor_network,
            critic_network,
            clip_epsilon=clip_epsilon,
            entropy_coeff=entropy_coeff,
            critic_coeff=critic_coeff,
            clip_value=clip_value,
            functional=False,  # no target networks here: plain modules are simpler and faster
        )
        self.multipliers = multipliers
        self.intrinsic_scale = intrinsic_scale
        self.intrinsic_critic_coeff = intrinsic_critic_coeff
        self.value_norm = value_norm
        self.huber_delta = huber_delta
        self.advantage_normalization = normalize_advantage
        self.advantage_floor = advantage_floor
        self.out_keys = [
            "loss_objective", "loss_entropy", "loss_critic", "entropy", "kl_approx", "clip_fraction"
        ]  # fmt: skip

    @dispatch
    def forward(self, tensordict: TensorDictBase) -> TensorDictBase:
        """Returns the three losses, to be summed, and what is worth logging, as scalars.

        Args:
            tensordict: a batch [*] with observations, actions and their log-probabilities,
                ``advantage`` and ``value_target``, and ``state_value`` if values are clipped.
        """
        return self.actor_losses(tensordict).update(self.critic_losses(tensordict))

    def actor_losses(self, tensordict: TensorDictBase) -> TensorDict:
        """What :meth:`forward` returns of the actor, for those who update it apart."""
        tensordict = tensordict.copy()
        advantage = self.combined_advantage(tensordict)
        mask = self._mask(tensordict, advantage)
        log_ratio, distribution, kl, _ = self._log_weight(tensordict, advantage.shape[:-1])
        clipped = log_ratio.clamp(*self._clip_bounds)
        gain = torch.minimum(log_ratio.exp() * advantage, clipped.exp() * advantage)
        entropy = self._get_entropy(distribution, advantage.shape[:-1])
        return TensorDict(
            {
                "loss_objective": _masked_mean(-gain, mask),
                "loss_entropy": _masked_mean(-self.entropy_coeff * entropy, mask),
                "entropy": _masked_mean(entropy.detach(), mask),
                "kl_approx": _masked_mean(kl.detach(), mask),
                "clip_fraction": _masked_mean((clipped != log_ratio).to(gain.dtype), mask),
            }
        )

    def critic_losses(self, tensordict: TensorDictBase) -> TensorDict:
        """What :meth:`forward` returns of the critic."""
        loss, _, _ = self.loss_critic(tensordict)
        return TensorDict({"loss_critic": _masked_mean(loss, self._mask(tensordict, loss))})

    def _set_in_keys(self) -> None:
        keys = self.tensor_keys
        names = [*self.actor_network.in_keys, *self.critic_network.in_keys]
        names += [keys.action, keys.sample_log_prob, keys.advantage, keys.value_target, keys.value]
        self._in_keys = list(dict.fromkeys(names))

    def combined_advantage(self, tensordict: TensorDictBase) -> Tensor:
        """The scalar, normalised advantage [*, (A,) 1] that the policy is trained with."""
        advantage = tensordict.get(self.tensor_keys.advantage)
        if advantage is None:
            raise KeyError(
                f"The batch holds no {self.tensor_keys.advantage!r}: run MultiHeadGAE on it first."
            )
        mask = self._mask(tensordict, advantage)
        if self.advantage_normalization == "per_head":
            advantage = _standardize(advantage, mask, self.advantage_floor)
        if advantage.shape[-1] > 1:
            if self.multipliers is None:
                raise ValueError(
                    f"The advantage has {advantage.shape[-1]} heads and must become one number: "
                    "give multipliers=LagrangeMultipliers(...) to MultiHeadClipPPOLoss."
                )
            advantage = self.multipliers.combine(advantage, self.intrinsic_scale)
        if self.advantage_normalization == "none":
            return advantage
        return _standardize(advantage, mask, self.advantage_floor)

    def loss_critic(self, tensordict: TensorDictBase) -> tuple[Tensor, None, None]:
        """The critic's loss per entry [*, (A,) 1]: its heads', each times its weight, summed."""
        target = tensordict.get(self.tensor_keys.value_target)
        value = self.critic_network(tensordict.copy()).get(self.tensor_keys.value)
        if self.value_norm is not None:
            if self.training:
                self.value_norm.update(target, self._mask(tensordict, target))
            target = self.value_norm.normalize(target)
        loss = F.huber_loss(value, target, delta=self.huber_delta, reduction="none")
        if self.clip_value is not None:
            old = tensordict.get(self.tensor_keys.value)
            near = old + (value - old).clamp(-self.clip_value, self.clip_value)
            loss_near = F.huber_loss(near, target, delta=self.huber_delta, reduction="none")
            loss = torch.maximum(loss, loss_near)
        loss = torch.cat([loss[..., :1], self.intrinsic_critic_coeff * loss[..., 1:]], -1)
        return self.critic_coeff * loss.sum(-1, keepdim=True), None, None

    def _get_entropy(self, dist: Distribution, adv_shape: torch.Size) -> Tensor:
        """The entropy per entry [*, (A,) 1], sampled where there is no closed form.

        TorchRL's own looks whether the result is finite, which makes the host wait.
        """
        if has_analytic_entropy(dist):
            return dist.entropy().unsqueeze(-1)
        sample = dist.rsample() if dist.has_rsample else dist.sample()
        return -dist.log_prob(sample).unsqueeze(-1)

    def _mask(self, tensordict: TensorDictBase, like: Tensor) -> Tensor | None:
        """What counts [*, (A,) 1], or ``None`` if everything does."""
        mask = tensordict.get(self.tensor_keys.mask, default=None)
        if mask is None:
            return None
        if mask.ndim == like.ndim - 1:
            mask = mask.unsqueeze(-1)
        if mask.shape != (*like.shape[:-1], 1):
            raise ValueError(
                f"{self.tensor_keys.mask!r} of shape {list(mask.shape)} does not fit data of "
                f"shape {list(like.shape)}: expected {[*like.shape[:-1], 1]}."
            )
        return mask


def _masked_mean(values: Tensor, mask: Tensor | None) -> Tensor:
    """Mean over all but the last dimension's single entry, of what counts."""
    if mask is None:
        return values.mean()
    return torch.where(mask, values, 0).sum() / mask.sum().clamp_min(1)


def _standardize(values: Tensor, mask: Tensor | None, floor: float) -> Tensor:
    """Brings each head to mean 0 and deviation 1 over what counts; the rest becomes 0."""
    dims = tuple(range(values.ndim - 1))
    if mask is None:
        mask = torch.ones_like(values[..., :1], dtype=torch.bool)
    weight = mask / mask.sum().clamp_min(1)
    centred = values - (torch.where(mask, values, 0) * weight).sum(dims, keepdim=True)
    variance = (torch.where(mask, centred, 0).square() * weight).sum(dims, keepdim=True)
    return torch.where(mask, centred / variance.sqrt().clamp_min(floor), 0)
