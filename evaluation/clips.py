"""Films of policies whose bodies or matches can be drawn."""

from pathlib import Path

import torch

from evaluation.population import InputError, Population
from evaluation.progress import Progress, silent
from evaluation.rollout import env_config, held_out_seed
from sipo_trl.archive import ArchiveError
from sipo_trl.envs.config import FootballConfig, LocomotionConfig
from sipo_trl.envs.football.render import film_match
from sipo_trl.envs.humanoid.render import film


def film_policies(
    population: Population, folder: Path, *, seed: int = 0, progress: Progress = silent
) -> str | None:
    """Film one episode of each policy that is not in the folder yet, as ``0001.webp``.

    Args:
        population: policies that were archived with their weights and settings.
        folder: where the films go.
        seed: decides how the episodes start.
        progress: is told how many policies are done, and of how many.

    Returns:
        Why there are no films, if they cannot be made; ``None`` too where there is nothing to see.
    """
    try:
        settings = env_config(population.policies[0])
        if not isinstance(settings, LocomotionConfig | FootballConfig):
            return None
        folder.mkdir(parents=True, exist_ok=True)
        for index, (policy, entry) in enumerate(
            zip(population.policies, population.archive, strict=True)
        ):
            progress(index, len(population))
            path = folder / f"{policy.name}.webp"
            if not path.exists():
                env = settings.make(1, seed=held_out_seed(seed, policy.name))
                with torch.random.fork_rng(devices=[]):
                    make = film if isinstance(settings, LocomotionConfig) else film_match
                    make(env, entry.load_policy(), path)
                env.close()
        progress(len(population), len(population))
    except (ArchiveError, InputError, ImportError, RuntimeError) as error:
        return f"There are no films: {error}"
    return None
