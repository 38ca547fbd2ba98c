"""Playing archived policies again."""

import hashlib
from dataclasses import replace
from typing import Any

import torch

from evaluation.population import InputError, Policy, Population, check_policies
from evaluation.progress import Progress, silent
from sipo_trl.archive import ArchiveError
from sipo_trl.envs.config import ENVS, EnvConfig
from sipo_trl.envs.episodes import play, remembering, summarize

_STORED = "leave out --episodes to use the stored states"


def replay(
    population: Population,
    *,
    episodes: int,
    exploration: str = "mean",
    seed: int = 0,
    progress: Progress = silent,
) -> Population:
    """The same policies, with new episodes in their own environment.

    No episode has a seed that training uses: they are held out.

    Args:
        population: policies that were archived with their weights and settings.
        episodes: how many to play with each policy.
        exploration: ``"mean"`` takes the most likely actions, ``"sample"`` draws them.
        seed: decides all the draws.
        progress: is told how many policies are done, and of how many.
    """
    if episodes < 1:
        raise InputError(f"--episodes is {episodes}: give at least 1.")
    played = []
    for index, (policy, entry) in enumerate(
        zip(population.policies, population.archive, strict=True)
    ):
        progress(index, len(population))
        actor = entry.load_policy()
        own_seed = held_out_seed(seed, policy.name)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(own_seed)
            settings = env_config(policy)
            env = _make(settings, policy, episodes)
            # The world stays the one that was trained in; what happens there is drawn anew.
            env.set_seed(own_seed)
            rollout = play(
                remembering(env, actor), actor, horizon=settings.horizon, exploration=exploration
            )
        env.close()
        data = summarize(rollout, columns=settings.columns).columns
        played.append(replace(policy, data=data))
    progress(len(population), len(population))
    check_policies(tuple(played))
    actions = {"mean": "most likely", "sample": "drawn"}[exploration]
    origin = f"{episodes} held-out episodes per policy ({actions} actions, seed {seed})"
    return replace(population, policies=tuple(played), origin=origin)


def env_config(policy: Policy) -> EnvConfig:
    """The settings of the environment that a policy was trained in."""
    settings: Any = policy.config.get("env")
    name = settings.get("name") if isinstance(settings, dict) else None
    if not isinstance(name, str) or name not in ENVS:
        raise InputError(
            f"{policy.path}: its environment {name!r} is not installed here (there are "
            f"{', '.join(ENVS)}): {_STORED}."
        )
    try:
        return ENVS[name](**settings)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{policy.path}: its settings do not fit the environment {name!r} of this version "
            f"({error}): {_STORED}."
        ) from error


def held_out_seed(seed: int, name: str) -> int:
    """A seed that no part of a training has.

    Examples:
        >>> held_out_seed(0, "0001") == held_out_seed(0, "0002")
        False
    """
    digest = hashlib.sha256(f"held out {seed} {name}".encode()).digest()
    return int.from_bytes(digest[:4], "big")


def _make(settings: EnvConfig, policy: Policy, episodes: int) -> Any:
    world = policy.config.get("seed", 0)
    try:
        return settings.make(episodes, seed=world)
    except ImportError as error:
        raise InputError(f"{policy.path}: {error} Or {_STORED}.") from error


def try_replay(population: Population, **options: Any) -> tuple[Population, str | None]:
    """New episodes if they can be had; else the stored ones, and why."""
    try:
        return replay(population, **options), None
    except (InputError, ArchiveError) as error:
        return population, f"Stored episodes are used, for the policies cannot be played: {error}"
