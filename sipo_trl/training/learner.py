"""One policy, everything that it is learned with, and one update of it."""

import math
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Any

import torch
from tensordict import TensorDict, TensorDictBase
from tensordict.nn import TensorDictModuleBase, TensorDictSequential
from tensordict.utils import NestedKey, unravel_key
from torch import Tensor, nn
from torchrl.envs import EnvBase
from torchrl.modules import RunningValueNorm, set_recurrent_mode

from sipo_trl.envs.episodes import without_practice
from sipo_trl.measures import StateDistanceMeasure
from sipo_trl.models import make_actor, make_critic, update_norms
from sipo_trl.objectives import (
    EpisodeReturns,
    HeadValueNorm,
    LagrangeMultipliers,
    MultiHeadClipPPOLoss,
    MultiHeadGAE,
    filtered_reward,
    finished_mean,
    summed_reward,
    whole_episode,
)
from sipo_trl.training.config import NetworkConfig, PPOConfig
from sipo_trl.training.descent import Descent
from sipo_trl.transforms import StateDistanceReward


class Learner:
    """Learns one policy that keeps its distance from J others, batch by batch.

    A composition of the package's parts and nothing more: intrinsic rewards, advantages per head,
    PPO on their combination, the dual step, the measure's own learning. All state is in
    :meth:`components`; nothing is read on the host.

    Args:
        env: the environment, for its specs; batch-locked [B].
        measure: the distance to the J earlier policies.
        multipliers: their J constraints.

    Keyword Args:
        network: size and shape of actor and critic.
        ppo: settings of the update.
        intrinsic_scale: the paper's alpha.
        rewards: ``"heads"``: one value head per reward; ``"summed"``, ``"filter"``: one mixed one.
        solved: the return from which an episode solves the task; any does if ``None``.
    """

    def __init__(
        self,
        env: EnvBase,
        measure: StateDistanceMeasure,
        multipliers: LagrangeMultipliers,
        *,
        network: NetworkConfig,
        ppo: PPOConfig,
        intrinsic_scale: float = 1.0,
        rewards: str = "heads",
        solved: float | None = None,
    ) -> None:
        constraints = measure.num_references
        heads = 1 + constraints if rewards == "heads" else 1
        self.ppo, self.rewards, self.intrinsic_scale = ppo, rewards, intrinsic_scale
        self.solved = -math.inf if solved is None else solved
        self.recurrent = network.gru is not None
        self.actor = make_actor(
            env,
            distribution=network.distribution,
            initial_std=network.initial_std,
            **network.layers(),
            device=env.device,
        )
        self.critic = make_critic(env, heads=heads, **network.layers(), device=env.device)
        self.distance = StateDistanceReward(measure).to(env.device)
        self.multipliers = multipliers.to(env.device)
        # The task, the distances, and how many steps they are sums of.
        self.returns = EpisodeReturns(env.batch_size, 2 + constraints).to(env.device)
        value_norm = HeadValueNorm(shape=heads, device=env.device) if ppo.value_norm else None
        scaled = ppo.normalize_intrinsic and heads > 1
        self.gae = MultiHeadGAE(
            gamma=ppo.discount,
            lmbda=ppo.gae_lambda,
            value_network=self.critic,
            value_norm=value_norm,
            intrinsic_norm=RunningValueNorm(shape=heads - 1) if scaled else None,
            bootstrap_intrinsic=not measure.final_only,
        ).to(env.device)
        self.loss = MultiHeadClipPPOLoss(
            self.actor,
            self.critic,
            multipliers=self.multipliers,
            intrinsic_scale=intrinsic_scale,
            value_norm=value_norm,
            huber_delta=ppo.huber_delta,
            clip_value=ppo.value_clip,
            intrinsic_critic_coeff=ppo.intrinsic_critic,
            clip_epsilon=ppo.clip,
            entropy_coeff=ppo.entropy,
            normalize_advantage=ppo.normalize_advantage,
            advantage_floor=ppo.advantage_floor,
        )
        self._name_group_keys(self.critic.out_keys[0])
        actor, critic = (self.actor, ppo.actor_lr), (self.critic, ppo.critic_lr)
        self.descents = (
            [
                Descent([actor], self.loss.actor_losses, ppo=ppo),
                Descent([critic], self.loss.critic_losses, ppo=ppo),
            ]
            if ppo.parallel
            else [Descent([actor, critic], self.loss, ppo=ppo)]
        )
        self._has_learned = False

    @property
    def policy(self) -> TensorDictModuleBase:
        """What a collector runs: the actor, and a recurrent critic for its hidden states."""
        return TensorDictSequential(self.actor, self.critic) if self.recurrent else self.actor

    def components(self) -> dict[str, Any]:
        """Everything with a state, by name, for checkpoints."""
        return {
            "actor": self.actor,
            "critic": self.critic,
            "measure": self.distance.measure,
            "multipliers": self.multipliers,
            "returns": self.returns,
            "norms": nn.ModuleList(
                norm for norm in (self.gae.value_norm, self.gae.intrinsic_norm) if norm is not None
            ),
            **{f"optimizer_{i}": descent.optimizer for i, descent in enumerate(self.descents)},
        }

    def update(self, batch: TensorDictBase) -> TensorDictBase:
        """Learns from one batch [B, T] and returns what is worth knowing, on the device.

        The metrics are scalars, but for ``distance`` and ``multiplier`` [J]. Those of episodes
        are NaN if none ended in the batch. Where engines may break down, the episodes that this
        cut short are counted as ``lost``, and as nothing else.
        """
        batch = self.distance(batch)
        metrics, distances = self._episodes(batch)
        if self.distance.measure.mean_over == "steps":
            batch = _centred(batch)
        batch = self._mix(batch, distances)
        self.gae(batch)
        metrics.update(self._improve(batch))
        metrics["multiplier"] = self.multipliers.update(metrics["distance"])
        for network in (self.actor, self.critic):
            update_norms(network, batch)
        states = batch["next"].select("diversity_state", "practice", strict=False)
        learned = self.distance.measure.update(without_practice(states)["diversity_state"])
        return metrics.update({f"measure_{name}": value for name, value in learned.items()})

    def _episodes(self, batch: TensorDictBase) -> tuple[TensorDict, Tensor]:
        """What the finished episodes achieved, and each step's distances so far [B, T, J]."""
        following, measure = batch["next"], self.distance.measure
        done, reward = following["done"], following["reward"]
        rewards = [reward, following["intrinsic_reward"], torch.ones_like(reward)]
        returns = self.returns(torch.cat(rewards, -1), done)
        distances = measure.distance(returns[..., 1:-1], returns[..., -1:])
        success, lost, practice = (
            following.get(key, default=torch.zeros_like(done))
            for key in ("success", "lost", "practice")
        )
        # An engine that broke down says nothing about the policy, nor does an easier start.
        ended = done & ~lost & ~practice
        finished = finished_mean(returns, ended)
        good = self.multipliers.satisfied(distances).all(-1, keepdim=True)
        good &= returns[..., :1] >= self.solved
        metrics = TensorDict(
            {
                "return": finished[0],
                "distance": measure.distance(finished[1:-1], finished[-1:]),
                "success": finished_mean(success.to(reward.dtype), ended)[0],
                "good": finished_mean(good.to(reward.dtype), ended)[0],
                "episodes": ended.sum(),
            }
        )
        if "lost" in following.keys():
            metrics["lost"] = lost.sum()
        return metrics, distances

    def _mix(self, batch: TensorDictBase, distances: Tensor) -> TensorDictBase:
        if self.rewards == "summed":
            return summed_reward(batch, self.multipliers, self.intrinsic_scale)
        if self.rewards == "filter":
            distances = whole_episode(distances, batch["next", "done"])
            return filtered_reward(batch, self.multipliers, self.intrinsic_scale, distances)
        return batch

    def _improve(self, batch: TensorDictBase) -> TensorDict:
        """The PPO epochs; returns the means of their losses."""
        keys = [*self.loss.in_keys, self.loss.tensor_keys.mask, "is_init"]
        batch = batch.select(*keys, strict=False)
        # Recurrent networks learn from sequences [n, chunk].
        batch = batch.reshape(-1, self.ppo.chunk) if self.recurrent else batch.reshape(-1)
        learn = partial(Descent.learn, batch=batch, orders=self._orders(batch))
        # A new thread would compute with all cores, however few its maker was told to use.
        pool = ThreadPoolExecutor(
            len(self.descents),
            initializer=torch.set_num_threads,
            initargs=(torch.get_num_threads(),),
        )
        with set_recurrent_mode(self.recurrent), pool as threads:
            if len(self.descents) > 1 and self._has_learned:
                later = [
                    threads.submit(copy_context().run, learn, descent) for descent in self.descents
                ]
                losses = [future.result() for future in later]
            else:
                # Compilers, which work at the first update, put random numbers back that another
                # thread may have drawn meanwhile.
                losses = [learn(descent) for descent in self.descents]
        self._has_learned = True
        return losses[0].update(losses[-1])

    def _orders(self, batch: TensorDictBase) -> list[slice | Tensor]:
        """How each epoch arranges a batch, before it is divided."""
        if self.ppo.minibatches == 1:
            return [slice(None)] * self.ppo.epochs
        return [torch.randperm(len(batch), device=batch.device) for _ in range(self.ppo.epochs)]

    def _name_group_keys(self, value_key: NestedKey) -> None:
        """Values, advantages and masks stand where the critic writes: at the root or per agent."""
        group = () if isinstance(value_key, str) else value_key[:-1]
        keys = {
            name: unravel_key((*group, key))
            for name, key in {
                "value": "state_value",
                "advantage": "advantage",
                "value_target": "value_target",
            }.items()
        }
        self.gae.set_keys(**keys)
        self.loss.set_keys(**keys, mask=unravel_key((*group, "alive")))


def _centred(batch: TensorDictBase) -> TensorDictBase:
    """Intrinsic rewards less their mean, which is what a mean over the steps lived is learned from.

    The gradient of a ratio, the sum of an episode's distances by its length, is that of the return
    of what is above it: a step like all others neither pays nor costs, however many there are.
    """
    reward = batch["next", "intrinsic_reward"]
    mean = reward.mean(tuple(range(reward.ndim - 1)))
    return batch.set(("next", "intrinsic_reward"), reward - mean)
