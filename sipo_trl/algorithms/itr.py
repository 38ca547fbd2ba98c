"""Iterative learning (SIPO, algorithm 1): one policy after another, each away from all before."""

from sipo_trl.training.config import ITRConfig
from sipo_trl.training.entry import append_entry
from sipo_trl.training.iteration import Iteration, discard_checkpoints
from sipo_trl.training.reporting import Reporter, explain
from sipo_trl.training.run_folder import RunFolder


def run_itr(config: ITRConfig, folder: RunFolder, reporter: Reporter) -> None:
    """Learns policies until the run's archive holds ``config.iterations`` of them.

    Started on a folder with an archive or a checkpoint in it, this goes on where they end.

    Args:
        config: the settings.
        folder: the run's folder, locked by the caller.
        reporter: is told about every update and outcome, and saves in between.
    """
    archive = folder.archive
    for index in range(len(archive)):  # a kill may have come between an entry and the tidying up
        discard_checkpoints(folder.iteration(index))
    while len(archive) < config.iterations:
        iteration = Iteration(config, archive, folder.iteration(len(archive)))
        reporter.begin(iteration)
        outcome = iteration.run(reporter.update)
        append_entry(
            config,
            archive,
            outcome.actor,
            outcome.evaluation,
            multipliers=outcome.multipliers,
        )
        reporter.end(explain(iteration.index, outcome, iteration.attempt.learner.multipliers))
        iteration.attempt.close()
        discard_checkpoints(folder.iteration(iteration.index))
