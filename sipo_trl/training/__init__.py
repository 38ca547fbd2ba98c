"""The shared loop: collect, learn, log, save, resume.

- :mod:`~sipo_trl.training.config`: all settings, typed;
- :class:`Learner`: one policy and one update of it, a composition of the package's parts;
- :class:`Attempt`: a learner in its environment;
- :class:`PlainCollector`, :class:`ResumableCollector`, :class:`WorkerCollector`: where its batches
  come from;
- :class:`Iteration`: attempts within a budget, checkpointed, until a policy is accepted;
- :class:`RunFolder`, :class:`Reporter`: what a run leaves on disk and tells its user;
- :mod:`~sipo_trl.training.command_line`: from a command line to settings.
"""

from sipo_trl.training.attempt import Attempt
from sipo_trl.training.collector import ResumableCollector
from sipo_trl.training.evaluation import Evaluation, evaluate
from sipo_trl.training.iteration import Iteration, Outcome
from sipo_trl.training.learner import Learner
from sipo_trl.training.plain_collector import PlainCollector
from sipo_trl.training.reporting import Interrupted, Reporter
from sipo_trl.training.run_folder import RunError, RunFolder
from sipo_trl.training.worker_collector import WorkerCollector

__all__ = [
    "Attempt",
    "Evaluation",
    "Interrupted",
    "Iteration",
    "Learner",
    "Outcome",
    "PlainCollector",
    "Reporter",
    "ResumableCollector",
    "RunError",
    "RunFolder",
    "WorkerCollector",
    "evaluate",
]
