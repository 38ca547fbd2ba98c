"""The process that plays one game; :class:`~sipo_trl.envs.smac.sc2.GameProcess` starts this file.

Whatever goes wrong ends it, with the reason on its standard error: its client starts another one.
"""

import json
import os
import select
import signal
import socket
import sys
import threading
from pathlib import Path
from types import ModuleType

# How deep below the folder that holds the project this file stands.
PACKAGES = ("sipo_trl", "envs", "smac", "sc2")


def main() -> None:
    """Starts a game, tells the client, then does as it is told."""
    del sys.path[0]  # this folder, whose modules go by their full names
    _spare_packages()
    from sipo_trl.envs.smac.sc2 import channel, messages

    descriptor, memory, settings = json.loads(sys.argv[1])
    client = socket.socket(fileno=descriptor)
    threading.Thread(target=_die_with_client, args=(client,), daemon=True).start()
    messages.register_messages()
    from sipo_trl.envs.smac.sc2.game import Game

    settings = channel.GameSettings(**settings)
    arrays = channel.map_arrays(memory, settings)
    action, units = (arrays[name][settings.index] for name in ("action", "units"))
    game = Game(settings)
    arrays["ground"][settings.index] = game.ground
    arrays["version"][settings.index] = game.version
    client.sendall(channel.RECEIPT)
    for message in iter(lambda: client.recv(channel.COMMAND.size, socket.MSG_WAITALL), b""):
        command, argument = channel.COMMAND.unpack(message)
        if command == channel.STEP:
            game.step(action, units)
        elif command == channel.BEGIN:
            game.begin(units)
        elif command == channel.CREATE:
            game.create(argument)
        else:
            game.quit()
        client.sendall(channel.RECEIPT)


def _spare_packages() -> None:
    """Lets modules beside this one be imported without what their packages import: torch.

    Which takes seconds and hundreds of megabytes, and there is a worker for each game.
    """
    folder, name = Path(__file__).parents[len(PACKAGES)], ""
    for package in PACKAGES:
        folder, name = folder / package, f"{name}.{package}".lstrip(".")
        sys.modules[name] = ModuleType(name)
        sys.modules[name].__path__ = [str(folder)]


def _die_with_client(client: socket.socket) -> None:
    """Ends this process and its game, whatever they do, when the client has gone."""
    poll = select.poll()
    poll.register(client, 0)  # the end of a connection is reported without being asked for
    poll.poll()
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main()
