"""One attempt at a policy: a learner, an environment, and the batches between them."""

import math
from typing import Any

from tensordict import TensorDictBase
from torchrl.envs import EnvBase
from torchrl.objectives import KLAdaptiveLR

from sipo_trl.envs.episodes import remembering
from sipo_trl.measures import StateDistanceMeasure
from sipo_trl.objectives import LagrangeMultipliers
from sipo_trl.training.collector import ResumableCollector
from sipo_trl.training.config import CollectorConfig, ITRConfig
from sipo_trl.training.learner import Learner
from sipo_trl.training.metrics import Row, to_row
from sipo_trl.training.plain_collector import PlainCollector
from sipo_trl.training.run_folder import RunError
from sipo_trl.training.worker_collector import WorkerCollector


class Attempt:
    """Collects and learns, from fresh networks, until told to stop.

    Args:
        config: the run's settings.
        env: the copies to learn in, freshly made.
        measure: the distance to the archived policies, freshly made.
    """

    def __init__(self, config: ITRConfig, env: EnvBase, measure: StateDistanceMeasure) -> None:
        algorithm = config.algorithm
        updates = config.budget.frames // config.collector.frames_per_batch
        multipliers = LagrangeMultipliers(
            measure.num_references,
            measure.threshold(config.measure.delta),
            lr=algorithm.multiplier.lr / config.measure.unit,
            maximum=algorithm.multiplier.maximum,
            warmup=math.floor(algorithm.multiplier.warmup * updates),
            initial=algorithm.multiplier.initial,
            fixed=algorithm.multiplier.fixed,
        )
        self.learner = Learner(
            env,
            measure,
            multipliers,
            network=config.network,
            ppo=config.ppo,
            intrinsic_scale=config.measure.alpha,
            rewards=algorithm.rewards,
            solved=config.env.solved,
        )
        target_kl = config.ppo.target_kl
        self.schedules = [
            KLAdaptiveLR(descent.optimizer, target_kl)
            for descent in self.learner.descents
            if target_kl is not None
        ]
        self.collector = _make_collector(config.collector, env, self.learner)

    def components(self) -> dict[str, Any]:
        """Everything with a state, by name, for checkpoints."""
        return {**self.learner.components(), "collector": self.collector}

    def step(self) -> Row:
        """Collects one batch and learns from it."""
        return self.learn(self.collect())

    def collect(self) -> TensorDictBase:
        """One batch [B, T] of experience."""
        return self.collector.next()

    def learn(self, batch: TensorDictBase) -> Row:
        """One update; returns its metrics."""
        row = to_row(self.learner.update(batch))
        broken = [
            k
            for k, v in row.items()
            if k.startswith(("loss_", "measure_")) and not math.isfinite(v)
        ]
        if broken or not bool(batch["next", "reward"].isfinite().all()):
            raise RunError(
                f"Training has broken down: {', '.join(broken) or 'the reward'} is no longer a "
                "number. Lower ppo.actor_lr and ppo.critic_lr, or look at the environment's "
                "rewards; nothing after the last checkpoint was kept."
            )
        for schedule in self.schedules:
            schedule.step(row["kl_approx"])
        if self.schedules:
            row["actor_lr"] = self.schedules[0].get_last_lr()[0]
        return {"frames": batch.numel(), **row}

    def close(self) -> None:
        """Frees the environment."""
        self.collector.shutdown()


def _make_collector(
    config: CollectorConfig, env: EnvBase, learner: Learner
) -> PlainCollector | ResumableCollector | WorkerCollector:
    actor, frames = learner.actor, config.frames_per_batch
    try:
        if config.decide_in_workers:
            return WorkerCollector(env, actor, learner.critic, frames_per_batch=frames)
        if PlainCollector.suits(env, actor):
            return PlainCollector(env, actor, frames_per_batch=frames, compile_turns=config.compile)
    except ValueError as error:
        raise RunError(str(error)) from error
    if config.compile:
        raise RunError(
            "collector.compile is for humanoids whose policy has no memory: leave it out."
        )
    return ResumableCollector(
        remembering(env, learner.policy),
        learner.policy,
        frames_per_batch=frames,
        total_frames=-1,
        device=config.device,
        track_traj_ids=False,
        trust_policy=True,
        auto_register_policy_transforms=False,  # `remembering` has done it
    )
