"""Isaac Gym's side of the bridge: moves its humanoids under the user's own interpreter.

:class:`~sipo_trl.envs.humanoid.IsaacGymServer` starts this file as a script. Isaac Gym runs on
Python 3.8 at most, so the file keeps to that version, and to what Isaac brings: numpy and torch.

The arrays are exchanged in memory that both processes map; a socket carries one command at a time
and its receipt. The memory has no name in the file system and the script ends when the other end
of the socket is closed, so nothing is left behind however the client ends.
"""

from __future__ import annotations

import json
import mmap
import os
import select
import socket
import struct
import sys
import threading
from typing import Any

import numpy as np

# To be raised whenever the commands, the arrays or the greeting change.
PROTOCOL = 1
OBSERVATIONS = 108
ACTIONS = 21
GREETING = struct.Struct("<4q")  # protocol, copies, observations, actions; never to be changed
COMMAND = struct.Struct("<Bq")  # which one, and its argument
STEP, SEED = range(2)
RECEIPT = b"."


def map_arrays(descriptor: int, num_envs: int) -> dict[str, np.ndarray]:
    """The shared arrays, by name; ``action`` and ``reset`` are the client's to write.

    Args:
        descriptor: of the memory, which becomes as large as it has to be.
        num_envs: number of copies.
    """
    columns = {
        "action": (np.float32, (num_envs, ACTIONS)),
        "observation": (np.float32, (num_envs, OBSERVATIONS)),
        "reward": (np.float32, (num_envs,)),
        "reset": (np.bool_, (num_envs,)),
        "done": (np.bool_, (num_envs,)),
        "time_out": (np.bool_, (num_envs,)),
    }
    layout = np.dtype([(name, dtype, shape) for name, (dtype, shape) in columns.items()])
    os.ftruncate(descriptor, layout.itemsize)
    whole = np.frombuffer(mmap.mmap(descriptor, layout.itemsize), layout)
    return {name: whole[name][0] for name in columns}


def main() -> None:
    """Makes the task, tells the client its sizes, then does as it is told."""
    settings = json.loads(sys.argv[1])
    # Where the interpreter found this file there are modules with names like env and task.
    del sys.path[0]
    channel = socket.socket(fileno=settings["channel"])
    threading.Thread(target=_die_with_client, args=(channel,), daemon=True).start()
    task = _make_task(settings)
    arrays = map_arrays(settings["memory"], settings["num_envs"])
    channel.sendall(GREETING.pack(PROTOCOL, task.num_envs, task.num_obs, task.num_acts))
    for message in iter(lambda: channel.recv(COMMAND.size, socket.MSG_WAITALL), b""):
        command, argument = COMMAND.unpack(message)
        if command == STEP:
            _step(task, arrays)
        else:
            _seed(argument)
        channel.sendall(RECEIPT)


def _die_with_client(channel: socket.socket) -> None:
    """Ends this process, whatever it is doing, when the client has closed its end or died."""
    poll = select.poll()
    poll.register(channel, 0)  # the end of a connection is reported without being asked for
    poll.poll()
    os._exit(0)


def _make_task(settings: dict[str, Any]) -> Any:
    try:
        import isaacgym  # noqa: F401  # refuses to be imported after torch
        import isaacgymenvs
    except ImportError as error:
        sys.exit(f"{error}: install Isaac Gym and IsaacGymEnvs for {sys.executable}.")
    task = isaacgymenvs.make(
        seed=settings["seed"],
        task="Humanoid",
        num_envs=settings["num_envs"],
        sim_device=settings["device"],
        rl_device=settings["device"],
        headless=True,
    )
    # Isaac counts the step that resets as an episode's first.
    task.max_episode_length = settings["horizon"] + 1
    return task


def _step(task: Any, arrays: dict[str, np.ndarray]) -> None:
    import torch

    reset = torch.from_numpy(arrays["reset"]).to(task.reset_buf.device)
    task.reset_buf.masked_fill_(reset, 1)
    action = torch.from_numpy(arrays["action"]).to(task.rl_device)
    observation, reward, done, extras = task.step(action)
    arrays["observation"][:] = observation["obs"].cpu().numpy()
    arrays["reward"][:] = reward.cpu().numpy()
    arrays["done"][:] = done.cpu().numpy()
    arrays["time_out"][:] = extras["time_outs"].cpu().numpy()


def _seed(seed: int) -> None:
    import torch

    torch.manual_seed(seed)


if __name__ == "__main__":
    main()
