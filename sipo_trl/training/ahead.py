"""A collector that fills the next batch while the last one is being learned from."""

import signal
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from copy import deepcopy
from multiprocessing.connection import Connection
from typing import Any

import torch
from tensordict import TensorDictBase
from tensordict.nn import TensorDictModuleBase
from torch import multiprocessing
from torchrl.checkpoint import GlobalRNGState

from sipo_trl.training.collector import ResumableCollector
from sipo_trl.training.run_folder import RunError

MakeCollector = Callable[[TensorDictModuleBase], ResumableCollector]


class AheadCollector:
    """Collects in a process of its own, one batch ahead of the learner.

    A batch is collected with the policy as it was when the batch before it was handed out: PPO's
    ratios, which compare with the probabilities of collection, allow for that. TorchRL's collectors
    can run ahead, too, but cannot be stopped and continued exactly. Here nothing depends on how
    long anything takes: one seed gives one sequence of batches, and a ``state_dict`` waits for the
    batch under way and holds it.

    Args:
        make_collector: makes the collector, in the other process, from the policy that acts there;
            must be picklable.
        policy: what acts; its weights are read whenever a batch is handed out.
        start: the ``state_dict`` of a collector that has not collected yet, to begin with.
    """

    def __init__(
        self,
        make_collector: MakeCollector,
        policy: TensorDictModuleBase,
        start: Mapping[str, Any],
    ) -> None:
        self._policy, self._acting = policy, deepcopy(policy).share_memory()
        context = multiprocessing.get_context("spawn")
        self._channel, theirs = context.Pipe()
        seed = int(torch.randint(2**31, ()))
        self._process = context.Process(
            target=_serve, args=(theirs, make_collector, self._acting, start, seed), daemon=True
        )
        self._process.start()
        theirs.close()
        self._waiting: TensorDictBase | None = None
        self._begin()

    def next(self) -> TensorDictBase:
        """The batch [B, T] that was collected meanwhile; the next one is begun."""
        batch, self._waiting = self.wait(), None
        self._begin()
        return batch

    def wait(self) -> TensorDictBase:
        """The batch under way, once it is there; it stays the next one to be handed out."""
        if self._waiting is None:
            self._waiting = self._receive()
        return self._waiting

    def state_dict(self) -> OrderedDict[str, Any]:
        """The batch that nobody has learned from yet, and where its collector stands."""
        return OrderedDict(waiting=self.wait().state_dict(), process=self._ask("state_dict"))

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continues where the collector that gave this state stood."""
        self.wait().load_state_dict(state_dict["waiting"])
        self._ask("load_state_dict", state_dict["process"])

    def shutdown(self) -> None:
        """Ends the other process."""
        self._process.terminate()
        self._process.join()
        self._channel.close()

    def _begin(self) -> None:
        self._acting.load_state_dict(self._policy.state_dict())
        self._send("next")

    def _ask(self, command: str, *arguments: Any) -> Any:
        self._send(command, *arguments)
        return self._receive()

    def _send(self, *message: Any) -> None:
        try:
            self._channel.send(message)
        except OSError as error:
            raise self._broken() from error

    def _receive(self) -> Any:
        try:
            answer = self._channel.recv()
        except (EOFError, OSError) as error:
            raise self._broken() from error
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _broken(self) -> RunError:
        self._process.join(timeout=1)
        return RunError(
            f"The process that collects has ended (exit code {self._process.exitcode}): resume the "
            "run, with collector.ahead=false if it happens again."
        )


def _serve(
    channel: Connection,
    make_collector: MakeCollector,
    policy: TensorDictModuleBase,
    start: Mapping[str, Any],
    seed: int,
) -> None:
    """Does in the other process as it is told, until nobody is there any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one who learns
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    # Whoever is not there any more neither sends nor receives.
    with suppress(EOFError, OSError):
        try:
            collector = make_collector(policy)
            collector.load_state_dict(start)
        except Exception as error:
            channel.send(error)
            return
        commands = _commands(collector)
        while True:
            command, *arguments = channel.recv()
            try:
                answer = commands[command](*arguments)
            except Exception as error:
                answer = error
            channel.send(answer)


def _commands(collector: ResumableCollector) -> dict[str, Callable[..., Any]]:
    """What the collector can be told to do."""
    random = GlobalRNGState()

    def state_dict() -> dict[str, Any]:
        return {"collector": collector.state_dict(), "random": random.state_dict()}

    def load_state_dict(state: Mapping[str, Any]) -> None:
        collector.load_state_dict(state["collector"])
        random.load_state_dict(state["random"])

    return {"next": collector.next, "state_dict": state_dict, "load_state_dict": load_state_dict}
