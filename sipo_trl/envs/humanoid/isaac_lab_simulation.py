"""The one simulation that Isaac Lab allows in a process."""

import weakref
from collections.abc import Callable
from typing import Any, ClassVar

import gymnasium
import torch
import torch.nn.functional as F
from tensordict import TensorDict
from torch import Tensor
from torchrl.envs.libs.isaac_lab import IsaacLabWrapper, _isaac_data_to_torch

from sipo_trl.envs.errors import EnvError
from sipo_trl.envs.humanoid.isaac import IsaacHumanoidEnv

TASK = "Isaac-Humanoid-Direct-v0"


class IsaacLabSimulation:
    """Humanoids [M] that environments with as many copies or fewer [N] take turns to move.

    Args:
        num_envs: number of bodies M.

    Keyword Args:
        device: where they are simulated.
        horizon: steps after which an episode is truncated.
    """

    _only: ClassVar["IsaacLabSimulation | None"] = None

    def __init__(self, num_envs: int, *, device: str, horizon: int) -> None:
        env = _make_task(num_envs, device, horizon)
        self.num_envs, self.device, self.horizon = num_envs, device, horizon
        self._task: Any = env.unwrapped
        self._env = IsaacLabWrapper(env, native_autoreset=True, device=torch.device(device))
        (self._key,) = self._env.observation_spec.keys()
        self._user: Callable[[], IsaacHumanoidEnv | None] = lambda: None
        # How the episodes began of the bodies that have not been moved since.
        self._start = self._env.reset()[self._key]
        self._at_start = torch.ones(num_envs, 1, dtype=torch.bool, device=device)

    @classmethod
    def shared(cls, num_envs: int, *, device: str, horizon: int) -> "IsaacLabSimulation":
        """The process's simulation, which the first call makes."""
        if cls._only is None:
            cls._only = cls(num_envs, device=device, horizon=horizon)
        only = cls._only
        if num_envs > only.num_envs or (device, horizon) != (only.device, only.horizon):
            raise EnvError(
                f"Isaac Lab simulates {only.num_envs} copies on {only.device} with "
                f"horizon={only.horizon} in this process already, and can do so only once: "
                f"{num_envs} copies on {device} with horizon={horizon} need a process of their own."
            )
        return only

    def seed(self, seed: int) -> None:
        """Decides the start of the episodes to come."""
        self._task.seed(seed)

    def serve(self, user: IsaacHumanoidEnv) -> None:
        """Lets an environment have the bodies; another that had them loses its episodes."""
        previous = self._user()
        if previous is user:
            return
        if previous is not None:
            previous.interrupt()
        self._user = weakref.ref(user)
        self._at_start = torch.zeros_like(self._at_start)

    def start(self, marked: Tensor) -> Tensor:
        """Puts the marked copies [N, 1] to the start of an episode, unless they are there already.

        Returns their first observations [N, 75]; those of other copies mean nothing.
        """
        reset = F.pad(marked, (0, 0, 0, self.num_envs - len(marked))) & ~self._at_start
        if reset.any():
            began = self._env.reset(TensorDict({"_reset": reset}, [self.num_envs]))[self._key]
            self._start = torch.where(reset, began, self._start)
            self._at_start = self._at_start | reset
        return self._start[: len(marked)]

    def step(self, action: Tensor) -> dict[str, Tensor]:
        """Moves the bodies; those that finish an episode begin another by themselves.

        Returns ``observation`` [N, 75], NaN where an episode has ended, ``torque`` [N, 21],
        ``reward``, ``terminated``, ``truncated`` and ``done`` [N, 1].

        Args:
            action: [N, 21].
        """
        count = len(action)
        actions = F.pad(action, (0, 0, 0, self.num_envs - count))
        data = TensorDict({"action": actions}, [self.num_envs], device=self.device)
        data, root = self._env.step_and_maybe_reset(data)
        following = data["next"]
        self._start, self._at_start = root[self._key], following["done"]
        keys = ("reward", "terminated", "truncated", "done")
        return {
            "observation": following[self._key][:count],
            "torque": _isaac_data_to_torch(self._task.robot.data.applied_torque)[:count],
            **{key: following[key][:count] for key in keys},
        }


def _make_task(num_envs: int, device: str, horizon: int) -> gymnasium.Env:
    try:
        from isaaclab.app import AppLauncher
    except ImportError as error:
        raise ImportError(
            f"backend isaaclab needs Isaac Lab ({error}): install it for this interpreter, or "
            "choose another backend."
        ) from error
    AppLauncher(headless=True, device=device)
    # Can be imported only once the application runs.
    import isaaclab_tasks  # noqa: F401
    from isaaclab_tasks.utils import parse_env_cfg

    config = parse_env_cfg(TASK, device=device, num_envs=num_envs)
    # Isaac ends an episode one step before its length, which it rounds up.
    config.episode_length_s = (horizon + 0.5) * config.sim.dt * config.decimation
    return gymnasium.make(TASK, cfg=config)
