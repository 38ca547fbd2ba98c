"""TorchRL's own multi-agent PPO on VMAS is kept from an earlier convention by one added line.

In VMAS's ``het_mass`` a heavy and a light agent are paid, as a team, for the speed of the faster
one, less the force that both spend. So the light one runs and the heavy one rests; whether it runs
to the left or to the right is a matter of taste. A first policy settles on something; a second
one, from another seed, may settle on the same or not; with the line it pays for doing so. What
came of it on three seeds stands in docs/compose.md. From the root of the repository:

    python docs/examples/vmas_ppo.py --out outputs/vmas_ppo
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import torch
from tensordict.nn import NormalParamExtractor, TensorDictModule
from torch import Tensor, nn
from torchrl.collectors import Collector
from torchrl.envs import EnvBase, TransformedEnv, VmasEnv
from torchrl.envs.utils import ExplorationType, set_exploration_type
from torchrl.modules import MultiAgentMLP, ProbabilisticActor, TanhNormal
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import MultiAgentGAE

from sipo_trl.archive import Archive
from sipo_trl.measures import RBFMeasure
from sipo_trl.transforms import StateDistanceReward

BATCH, MINIBATCH, EPOCHS = 2560, 640, 8
HORIZON = 40
WEIGHT = 1.0  # of the distance, beside a task reward of at most 0.7 per step
OBSERVATION, REWARD = ("agents", "observation"), ("agents", "reward")


def make_env(num_envs: int, seed: int) -> TransformedEnv:
    """A heavy and a light agent, many such pairs side by side."""
    scenario = {"green_mass": 2.0, "blue_mass": 0.5, "mass_noise": 0.0}
    return TransformedEnv(
        VmasEnv("het_mass", num_envs=num_envs, max_steps=HORIZON, seed=seed, **scenario)
    )


def make_network(outputs: int, *, centralized: bool) -> MultiAgentMLP:
    """A network for each agent, that sees its own position and velocity, or those of both."""
    return MultiAgentMLP(
        n_agent_inputs=4,
        n_agent_outputs=outputs,
        n_agents=2,
        centralized=centralized,
        share_params=False,
        num_cells=[64, 64],
        activation_class=nn.Tanh,
    )


def train(env: EnvBase, frames: int, seed: int) -> ProbabilisticActor:
    """Plain multi-agent PPO, as any TorchRL user would write it."""
    torch.manual_seed(seed)
    parameters = [("agents", "loc"), ("agents", "scale")]
    actor = nn.Sequential(make_network(4, centralized=False), NormalParamExtractor())
    policy = ProbabilisticActor(
        TensorDictModule(actor, [OBSERVATION], parameters),
        in_keys=parameters,
        out_keys=[env.action_key],
        distribution_class=TanhNormal,
        return_log_prob=True,
    )
    value = ("agents", "state_value")
    critic = TensorDictModule(make_network(1, centralized=True), [OBSERVATION], [value])
    gae = MultiAgentGAE(gamma=0.95, lmbda=0.9, value_network=critic, average_gae=True)
    gae.set_keys(reward=REWARD, value=value)
    loss = ClipPPOLoss(policy, critic, entropy_coeff=0.0)
    loss.set_keys(action=env.action_key, reward=REWARD, value=value)
    optimizer = torch.optim.Adam(loss.parameters(), lr=1e-3)
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
                nn.utils.clip_grad_norm_(loss.parameters(), 1.0)
                optimizer.step()
    collector.shutdown()
    return policy


@torch.no_grad()
def play(policy: ProbabilisticActor, seed: int, episodes: int = 64) -> tuple[float, Tensor]:
    """Plays whole episodes; gives their mean return and the observations [E, T, 2 agents, 4]."""
    torch.manual_seed(seed)
    with set_exploration_type(ExplorationType.RANDOM):
        step = make_env(episodes, seed).rollout(HORIZON, policy)["next"]
    return step[REWARD].sum(1).mean().item(), step[OBSERVATION]


def plot(velocities: dict[str, Tensor], path: Path) -> None:
    """Draws how fast the light agent runs, and to which side, for each policy."""
    figure, rows = plt.subplots(
        len(velocities), figsize=(8, 4.5), sharex=True, sharey=True, layout="constrained"
    )
    colours = ("tab:gray", "tab:orange", "tab:blue")
    for axes, (name, values), colour in zip(rows, velocities.items(), colours, strict=True):
        axes.hist(values.flatten().numpy(), bins=96, range=(-1, 1), density=True, color=colour)
        axes.set_title(name, loc="left")
        axes.set(yticks=[], xlim=(-1, 1))
        axes.spines[["left", "top", "right"]].set_visible(False)
    rows[-1].set_xlabel(
        "velocity of the light agent: to the left (negative) or to the right (positive)"
    )
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main(arguments: Sequence[str] | None = None) -> None:
    """Learns het_mass three times and compares how the light agent runs."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--frames", type=int, default=24 * BATCH, help="environment steps a policy")
    parser.add_argument("--out", type=Path, default=Path("outputs/vmas_ppo"), help="a new folder")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plot", type=Path, help="the picture, if not states.png in the folder")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    archive = Archive.create(options.out / "archive")

    first = train(make_env(64, options.seed), options.frames, options.seed)
    score, states = play(first, options.seed)
    archive.append(states.flatten(0, 1), metrics={"return": score})
    measure = RBFMeasure(archive, variance=0.3)

    # Both agents' observations are one state: it matters who does what.
    other = options.seed + 100
    env = make_env(64, other)
    env.append_transform(
        StateDistanceReward(measure, [OBSERVATION], weight=WEIGHT, reward_key=REWARD, state_ndim=2)
    )
    second = train(env, options.frames, other)

    another = train(make_env(64, other), options.frames, other)

    velocities = {}
    print(f"{'policy':26}{'return':>8}{'similarity':>12}{'to the right':>14}")
    policies = {"first": first, "without the line": another, "with the line": second}
    for name, policy in policies.items():
        score, visited = play(policy, other)
        similarity = -measure.reward(visited).mean().item()
        velocities[name] = visited[:, HORIZON // 2 :, 1, 2]
        to_the_right = (velocities[name].mean(1) > 0).float().mean().item()
        print(f"{name:26}{score:8.1f}{similarity:12.3f}{to_the_right:14.0%}")
    archive.append(visited.flatten(0, 1), metrics={"return": score, "similarity": similarity})
    plot(velocities, options.plot or options.out / "states.png")


if __name__ == "__main__":
    main()
