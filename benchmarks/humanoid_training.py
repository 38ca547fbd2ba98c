"""Training a humanoid: against Stable-Baselines3 on the same simulator, and where the time goes."""

import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from gymnasium.spaces import Box
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecEnv
from tensordict import TensorDictBase
from torch import nn
from torchrl.collectors import Collector

from benchmarks.precision import NATIVE_PRECISIONS
from benchmarks.table import Row, main
from benchmarks.timing import Call, in_turns, make_row
from sipo_trl.envs import HumanoidEnv
from sipo_trl.envs.config import HumanoidConfig
from sipo_trl.measures import RBFMeasure
from sipo_trl.models import make_actor
from sipo_trl.training import Attempt, PlainCollector
from sipo_trl.training.config import (
    AlgorithmConfig,
    BudgetConfig,
    CollectorConfig,
    ITRConfig,
    NetworkConfig,
    PPOConfig,
    RBFConfig,
)

# The sizes of conf/recipe/humanoid.yaml.
ENVS, STEPS = 64, 32
HIDDEN = (256, 128)
EPOCHS, MINIBATCHES = 5, 8
ARCHIVED, STATES = 3, 10_000


def rows(*, quick: bool) -> Iterator[Row]:
    """Measure everything at the sizes of ``docs/benchmarks.md``."""
    rounds = 5 if quick else 15
    yield from against_baselines(rounds=rounds)
    yield against_collector(rounds=rounds)
    yield from parts(rounds=rounds)


def against_baselines(*, rounds: int, compiled: bool = True) -> Iterator[Row]:
    """Compare the wall-clock time of collecting a batch and learning from it, on all cores."""
    attempts = {
        precision: make_attempt(0, compiled=compiled, precision=precision)
        for precision in NATIVE_PRECISIONS
    }
    baseline = make_baseline()
    calls: dict[str, Call] = {name: attempt.step for name, attempt in attempts.items()}
    peer = "Stable-Baselines3, float32"
    calls[peer] = lambda: baseline.learn(ENVS * STEPS, reset_num_timesteps=False)
    times = in_turns(calls, rounds=rounds, clock=time.perf_counter)
    what = f"humanoid, {ENVS} x {STEPS} frames and {EPOCHS} passes over them, products in"
    for name, attempt in attempts.items():
        yield make_row(f"{what} {name}", times[name], peer, times[peer], most_ratio=0.5)
        attempt.close()


def against_collector(*, rounds: int) -> Row:
    """Compare the CPU time of collecting a batch with what TorchRL's collector takes for it."""
    env = HumanoidEnv(batch_size=[ENVS], seed=0, threads=1)
    other = HumanoidEnv(batch_size=[ENVS], seed=0, threads=1)
    torch.manual_seed(0)
    policy = make_actor(env, hidden=list(HIDDEN), distribution="normal", initial_std=0.25)
    size = {"frames_per_batch": ENVS * STEPS}
    ours = PlainCollector(env, policy, **size)
    theirs = Collector(
        other,
        policy,
        **size,
        total_frames=-1,
        trust_policy=True,
        auto_register_policy_transforms=False,
    )
    peer = "TorchRL's Collector"
    times = in_turns({"ours": ours.next, peer: theirs.next}, rounds=rounds)
    ours.shutdown()
    theirs.shutdown()
    what = f"humanoid, {ENVS} x {STEPS} frames collected, physics included"
    return make_row(what, times["ours"], peer, times[peer])


def parts(*, rounds: int, compiled: bool = True) -> Iterator[Row]:
    """Show where the CPU time of an update with an archive goes."""
    attempt = make_attempt(ARCHIVED, compiled=compiled)
    some = Parts(attempt)
    calls = {
        "collection": some.collect,
        "intrinsic reward": some.intrinsic,
        "whole": attempt.step,
    }
    times = in_turns(calls, rounds=rounds)
    for part in ("collection", "intrinsic reward"):
        what = f"{ENVS} x {STEPS} frames with {ARCHIVED} archived policies: {part}"
        yield make_row(what, times[part], "the whole of it", times["whole"])
    attempt.close()


class Parts:
    """What an update consists of, one by one.

    Args:
        attempt: whose update.
    """

    def __init__(self, attempt: Attempt) -> None:
        self.attempt = attempt
        self.batch: TensorDictBase = attempt.collect()

    def collect(self) -> None:
        """Collects a batch."""
        self.batch = self.attempt.collect()

    def intrinsic(self) -> None:
        """Computes the distances of the batch to all archived policies."""
        self.attempt.learner.distance(self.batch.copy())


def make_attempt(archived: int, *, compiled: bool, precision: str = "float32") -> Attempt:
    """Make a learner against so many archived policies."""
    config = ITRConfig(
        env=HumanoidConfig(stack=1),
        measure=RBFConfig(delta=0.1),
        algorithm=AlgorithmConfig(name="sipo"),
        collector=CollectorConfig(num_envs=ENVS, frames_per_batch=ENVS * STEPS, compile=compiled),
        network=NetworkConfig(
            hidden=list(HIDDEN), activation="elu", distribution="normal", initial_std=0.25
        ),
        ppo=PPOConfig(
            epochs=EPOCHS,
            minibatches=MINIBATCHES,
            entropy=0.0,
            compile=compiled,
            parallel=compiled,
            precision=precision,
        ),
        budget=BudgetConfig(name="quick", frames=10_000_000),
    )
    torch.manual_seed(0)
    references = [torch.randn(STATES, 54) for _ in range(archived)]
    env = config.env.make(ENVS, seed=0)
    return Attempt(config, env, RBFMeasure(references, horizon=config.env.horizon))


def make_baseline() -> PPO:
    """Make their PPO, with the same network, batch and passes."""
    return PPO(
        "MlpPolicy",
        BaselineEnv(HumanoidEnv(batch_size=[ENVS], seed=0)),
        n_steps=STEPS,
        batch_size=ENVS * STEPS // MINIBATCHES,
        n_epochs=EPOCHS,
        policy_kwargs={
            "net_arch": {"pi": list(HIDDEN), "vf": list(HIDDEN)},
            "activation_fn": nn.ELU,
            "log_std_init": float(np.log(0.25)),
        },
        device="cpu",
        seed=0,
    )


class BaselineEnv(VecEnv):
    """Our humanoids, the way Stable-Baselines3 wants its environments.

    Args:
        env: the copies.
    """

    def __init__(self, env: HumanoidEnv) -> None:
        self.env, self.data = env, env.reset()
        size, actions = (env.observation_spec["observation"].shape[-1], env.action_spec.shape[-1])
        super().__init__(
            len(self.data), Box(-np.inf, np.inf, (size,), np.float32), Box(-1, 1, (actions,))
        )

    def reset(self) -> np.ndarray:
        """Starts all episodes."""
        self.data = self.env.reset()
        return self.data["observation"].numpy()

    def step_async(self, actions: np.ndarray) -> None:
        """Keeps the actions."""
        self.data["action"] = torch.from_numpy(actions)

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Makes the step, and starts finished episodes anew."""
        step, self.data = self.env.step_and_maybe_reset(self.data)
        after = step["next"]
        done = after["done"].numpy()[:, 0]
        infos: list[dict[str, Any]] = [{} for _ in done]
        for copy in done.nonzero()[0]:
            infos[copy]["terminal_observation"] = after["observation"][copy].numpy()
            infos[copy]["TimeLimit.truncated"] = not after["terminated"][copy].item()
        return self.data["observation"].numpy(), after["reward"].numpy()[:, 0], done, infos

    def close(self) -> None:
        """Frees the copies."""
        self.env.close()

    def get_attr(self, attr_name: str, indices: object = None) -> list[Any]:
        """Nothing that anybody asks for: no rendering."""
        return [None] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: object = None) -> None:
        """Nothing can be set."""
        raise NotImplementedError(attr_name)

    def env_method(self, method_name: str, *args: Any, indices: object = None, **kw: Any) -> Any:
        """Nothing can be called."""
        raise NotImplementedError(method_name)

    def env_is_wrapped(self, wrapper_class: type, indices: object = None) -> Sequence[bool]:
        """By nothing."""
        return [False] * self.num_envs


if __name__ == "__main__":
    sys.exit(main(only="humanoid_training"))
