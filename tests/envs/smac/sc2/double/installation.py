"""A folder that looks like the game's."""

import shlex
import sys
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection, Listener
from pathlib import Path
from typing import Literal

from s2clientprotocol import sc2api_pb2

from double import executable
from double.battle import BUILD, MAP_DATA, Battle

Fault = Literal["die", "hang", "close", "garbage", "refuse"]


class Installation:
    """A game that can be installed anywhere; the process that installs it plays it.

    Args:
        folder: to be SC2PATH.

    Keyword Args:
        maps: whose files to have.
        make_battle: what each process of the game plays.

    Attributes:
        battles: of the processes that were started so far, in that order, by process id.
        faults: the name of a request, how many of that name to answer before, and what to do
            instead of answering the next; each happens once.
        complaints: what battles found wrong with their requests.
    """

    def __init__(
        self,
        folder: Path,
        *,
        maps: tuple[str, ...] = ("2m_vs_1z", "2c_vs_64zg"),
        make_battle: Callable[[], Battle] = Battle,
    ) -> None:
        self.folder, self._make_battle = folder, make_battle
        self.battles: dict[int, Battle] = {}
        self.faults: list[tuple[str, int, Fault]] = []
        self.complaints: list[Exception] = []
        self._lock = threading.Lock()
        self._listener = Listener(str(folder / "battles"), "AF_UNIX")
        game = folder / "Versions" / f"Base{BUILD}" / "SC2_x64"
        game.parent.mkdir(parents=True)
        command = shlex.join([sys.executable, "-IS", executable.__file__, self._listener.address])
        game.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        game.chmod(0o755)
        (folder / "Maps" / "SMAC_Maps").mkdir(parents=True)
        for name in maps:
            (folder / "Maps" / "SMAC_Maps" / f"{name}.SC2Map").write_bytes(MAP_DATA)
        threading.Thread(target=self._listen, daemon=True).start()

    def close(self) -> None:
        """Starts no more battles."""
        self._listener.close()

    def _listen(self) -> None:
        while True:
            try:
                client = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._play, args=(client,), daemon=True).start()

    def _play(self, client: Connection) -> None:
        battle = self._make_battle()
        try:
            self.battles[client.recv()] = battle
            while True:
                client.send(self._react(battle, client.recv_bytes()))
        except (EOFError, ConnectionError):
            pass  # the executable has ended

    def _react(self, battle: Battle, message: bytes) -> tuple[str, bytes]:
        """What the executable is to do about a message, and what to send."""
        request = sc2api_pb2.Request.FromString(message)
        name = request.WhichOneof("request")
        fault = self._fault(name)
        if name == "quit":
            return "quit", b""
        if fault == "garbage":
            return "answer", b"\xff" * 20
        if fault == "refuse":
            response = sc2api_pb2.Response(id=request.id, status=battle.status, error=["no"])
            return "answer", response.SerializeToString()
        if fault is not None:
            return fault, b""
        try:
            return "answer", battle.answer(request).SerializeToString()
        except Exception as error:
            self.complaints.append(error)
            return "die", b""

    def _fault(self, name: str) -> Fault | None:
        with self._lock:
            for index, (request, left, fault) in enumerate(self.faults):
                if request != name:
                    continue
                if left == 0:
                    del self.faults[index]
                    return fault
                self.faults[index] = (request, left - 1, fault)
        return None
