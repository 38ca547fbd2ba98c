"""What a finished policy leaves in the archive."""

import torch

from sipo_trl.archive import Archive, Entry
from sipo_trl.envs.episodes import remembering
from sipo_trl.models import Actor
from sipo_trl.training.config import ITRConfig
from sipo_trl.training.evaluation import Evaluation, evaluate
from sipo_trl.training.seeds import derive_seed


def evaluate_entry(config: ITRConfig, archive: Archive, actor: Actor) -> Evaluation:
    """Plays the episodes of the archive's next entry: the same ones whenever it is asked.

    Args:
        config: the run's settings.
        archive: the earlier policies.
        actor: the policy.
    """
    entry = config.algorithm.entry
    with torch.random.fork_rng():
        torch.manual_seed(derive_seed(config.seed, "evaluation", len(archive)))
        env = config.make_env(entry.episodes)
        return evaluate(
            remembering(env, actor),
            actor,
            config.make_measure(archive),
            horizon=config.env.horizon,
            exploration=entry.exploration,
            max_states=entry.max_states,
            columns=config.env.columns,
        )


def append_entry(
    config: ITRConfig,
    archive: Archive,
    actor: Actor,
    evaluation: Evaluation,
    **metrics: object,
) -> Entry:
    """Adds a policy, its states and its figures to the archive."""
    return archive.append(
        evaluation.columns,
        policy=actor,
        metrics={**evaluation.metrics(), **metrics},
        config=config.as_dict(),
    )
