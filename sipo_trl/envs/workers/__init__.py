"""Engines that hold a whole process up, in processes of their own, beside memory that is shared.

- :class:`WorkerPool`: the processes, as the environment sees them;
- :class:`Handler`: what runs in them: one method for the copies, one for the pauses;
- :class:`PlainNetwork`: a policy's network without torch, for workers that decide by themselves.
"""

from sipo_trl.envs.workers.network import PlainNetwork
from sipo_trl.envs.workers.pool import WorkerPool
from sipo_trl.envs.workers.process import Handler

__all__ = ["Handler", "PlainNetwork", "WorkerPool"]
