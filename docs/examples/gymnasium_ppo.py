"""TorchRL's own PPO on CartPole finds another place to balance, through one added line.

Nothing in :func:`train` knows about distances. It is called three times: for a first policy; from
the same seed, in an environment to which ``StateDistanceReward`` was appended; and from another
seed without it, for comparison. From the root of the repository:

    python docs/examples/gymnasium_ppo.py --out outputs/gymnasium_ppo
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import gymnasium
import matplotlib.pyplot as plt
import torch
from gymnasium.vector import AutoresetMode
from scipy.stats import wasserstein_distance
from tensordict.nn import TensorDictModule
from torch import Tensor, nn
from torchrl.collectors import Collector
from torchrl.envs import EnvBase, GymWrapper, TransformedEnv
from torchrl.envs.utils import ExplorationType, set_exploration_type
from torchrl.modules import MLP, OneHotCategorical, ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

from sipo_trl.archive import Archive
from sipo_trl.measures import RBFMeasure
from sipo_trl.transforms import StateDistanceReward

BATCH, MINIBATCH, EPOCHS = 2048, 512, 6
HORIZON = 500
WEIGHT = 1.0  # of the distance, beside a task reward of 1 per step


def make_env(num_envs: int, seed: int) -> TransformedEnv:
    """CartPole, several copies of it side by side."""
    copies = gymnasium.make_vec(
        "CartPole-v1",
        num_envs,
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": AutoresetMode.DISABLED},  # TorchRL resets them itself
    )
    env = TransformedEnv(GymWrapper(copies))
    env.set_seed(seed)
    return env


def train(env: EnvBase, frames: int, seed: int) -> ProbabilisticActor:
    """Plain PPO, as any TorchRL user would write it."""
    torch.manual_seed(seed)
    layers = {"in_features": 4, "num_cells": [64, 64], "activation_class": nn.Tanh}
    policy = ProbabilisticActor(
        TensorDictModule(MLP(out_features=2, **layers), ["observation"], ["logits"]),
        in_keys=["logits"],
        distribution_class=OneHotCategorical,
        return_log_prob=True,
    )
    critic = ValueOperator(MLP(out_features=1, **layers), in_keys=["observation"])
    gae = GAE(gamma=0.99, lmbda=0.95, value_network=critic, average_gae=True)
    loss = ClipPPOLoss(policy, critic, entropy_coeff=0.0, critic_coeff=0.5, loss_critic_type="l2")
    optimizer = torch.optim.Adam(
        [{"params": policy.parameters(), "lr": 1e-3}, {"params": critic.parameters(), "lr": 1e-2}]
    )
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, total_iters=frames // BATCH)
    collector = Collector(
        env,
        policy,
        frames_per_batch=BATCH,
        total_frames=frames,
        auto_register_policy_transforms=False,  # the policy has no memory
    )
    for batch in collector:
        for _ in range(EPOCHS):
            gae(batch)
            transitions = batch.reshape(-1)
            for part in torch.randperm(len(transitions)).split(MINIBATCH):
                losses = loss(transitions[part])
                optimizer.zero_grad()
                (losses["loss_objective"] + losses["loss_critic"]).backward()
                optimizer.step()
        schedule.step()
    collector.shutdown()
    return policy


@torch.no_grad()
def play(policy: ProbabilisticActor, seed: int, episodes: int = 16) -> tuple[float, Tensor]:
    """Plays whole episodes; gives their mean return and the visited states [n, 4]."""
    torch.manual_seed(seed)
    with set_exploration_type(ExplorationType.RANDOM):
        rollout = make_env(episodes, seed).rollout(HORIZON, policy, break_when_any_done=False)
    step = rollout["next"]
    done = step["done"].squeeze(-1)
    first = done.cumsum(1) - done.long() == 0  # a copy that has ended goes on: not counted
    returns = (step["reward"].squeeze(-1) * first).sum(1)
    return returns.mean().item(), step["observation"][first]


def plot(positions: dict[str, Tensor], path: Path) -> None:
    """Draws where on the track the cart was, for each policy."""
    figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
    for name, values in positions.items():
        axes.hist(values.numpy(), bins=60, range=(-2.4, 2.4), density=True, alpha=0.6, label=name)
    axes.set(xlabel="position of the cart", ylabel="density", title="Where the pole is balanced")
    axes.legend()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main(arguments: Sequence[str] | None = None) -> None:
    """Learns CartPole three times and compares where the pole is balanced."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--frames", type=int, default=64 * BATCH, help="environment steps a policy")
    parser.add_argument("--out", type=Path, default=Path("outputs/gymnasium_ppo"), help="a folder")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plot", type=Path, help="the picture, if not states.png in the folder")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    archive = Archive.create(options.out / "archive")

    first = train(make_env(64, options.seed), options.frames, options.seed)
    score, states = play(first, options.seed)
    archive.append(states, metrics={"return": score})
    measure = RBFMeasure(archive, variance=0.5)

    # The same seed would give the first policy again, to the bit, were it not for the line.
    env = make_env(64, options.seed)
    env.append_transform(StateDistanceReward(measure, in_keys=["observation"], weight=WEIGHT))
    second = train(env, options.frames, options.seed)

    other = options.seed + 100
    another = train(make_env(64, other), options.frames, other)

    positions = {}
    print(f"{'policy':26}{'return':>8}{'similarity':>12}{'moved by':>10}")
    policies = {"first": first, "another seed": another, "with the line": second}
    for name, policy in policies.items():
        score, visited = play(policy, other)
        similarity = -measure.reward(visited).mean().item()
        moved = wasserstein_distance(states[:, 0].numpy(), visited[:, 0].numpy())
        print(f"{name:26}{score:8.1f}{similarity:12.3f}{moved:10.2f}")
        positions[name] = visited[:, 0]
    archive.append(visited, metrics={"return": score, "similarity": similarity, "moved_by": moved})
    plot(positions, options.plot or options.out / "states.png")


if __name__ == "__main__":
    main()
