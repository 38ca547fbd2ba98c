"""The humanoid in Isaac Gym."""

from collections.abc import Sequence
from pathlib import Path

import torch
from tensordict import TensorDictBase
from torch import Tensor
from torchrl.data import Categorical

from sipo_trl.envs.humanoid.isaac import IsaacHumanoidEnv
from sipo_trl.envs.humanoid.isaac_gym_process import IsaacGymServer
from sipo_trl.envs.humanoid.isaac_gym_server import OBSERVATIONS
from sipo_trl.envs.humanoid.task import FALLEN_HEIGHT, JOINT_FORCES

# What Isaac multiplies joint forces with before it observes them.
FORCE_SCALE = 0.01


class IsaacGymHumanoidEnv(IsaacHumanoidEnv):
    """Isaac Gym's humanoids, which live in a process of the user's own interpreter.

    Isaac Gym needs Python 3.8 or older, so it cannot share a process with TorchRL: see
    :class:`~sipo_trl.envs.humanoid.IsaacGymServer`.

    The keys are those of :class:`~sipo_trl.envs.humanoid.HumanoidEnv`, and ``alive``. Isaac starts
    a finished copy anew in the course of the following step, which therefore leads from the end of
    an episode to the beginning of the next and is worth nothing. ``alive`` [N, 1] is false at the
    root of such a step; its reward is 0 and it is never done. Losses leave it out if they are told
    to, as our training tells its own: ``loss.set_keys(mask="alive")``. A reset of all copies is
    carried out at once, with a step that nobody sees.

    Keyword Args:
        batch_size: number of copies [N].
        isaac_python: path of the interpreter that has Isaac Gym and IsaacGymEnvs.
        device: where Isaac simulates and where the tensors live.
        seed: decides the start of every episode; from torch's global generator if ``None``.
        horizon: steps after which an episode is truncated.
        timeout: seconds without an answer after which Isaac counts as hanging.
    """

    alive: Tensor

    def __init__(
        self,
        *,
        batch_size: Sequence[int],
        isaac_python: str | Path,
        device: torch.device | str = "cuda:0",
        seed: int | None = None,
        horizon: int = 1000,
        timeout: float = 300.0,
    ) -> None:
        super().__init__(OBSERVATIONS, batch_size=batch_size, device=device)
        self.observation_spec["alive"] = Categorical(
            2, shape=(*self.batch_size, 1), dtype=torch.bool, device=self.device
        )
        self.register_buffer("alive", torch.zeros_like(self.terminated))
        self.server = IsaacGymServer(
            isaac_python,
            num_envs=self.batch_size.numel(),
            device=str(device),
            seed=_drawn(seed),
            horizon=horizon,
            timeout=timeout,
        )
        # The memory that both processes see.
        self._shared = {name: torch.from_numpy(x) for name, x in self.server.arrays.items()}

    def close(self, *, raise_if_closed: bool = True) -> None:
        """Ends Isaac's process."""
        super().close(raise_if_closed=raise_if_closed)
        self.server.close()

    def _set_seed(self, seed: int | None) -> None:
        self.server.seed(_drawn(seed))

    def _advance(self, action: Tensor) -> dict[str, Tensor]:
        alive, shared = self.alive, self._shared
        shared["action"].copy_(action)
        shared["reset"].copy_(~alive.squeeze(-1))
        self.server.step()
        observation = shared["observation"].to(self.device, copy=True)
        reward, done, time_out = (
            shared[name].to(self.device, copy=True).unsqueeze(-1)
            for name in ("reward", "done", "time_out")
        )
        # Isaac does not tell a fall in the last step from a time-out.
        fallen = observation[:, :1] < FALLEN_HEIGHT
        return {
            "observation": observation,
            "torque": observation[:, JOINT_FORCES] / FORCE_SCALE,
            "reward": reward.masked_fill(~alive, 0),
            "terminated": alive & done & (~time_out | fallen),
            "truncated": alive & done & time_out,
            "alive": ~done,
        }

    def _begin(self, reset: Tensor | None) -> dict[str, Tensor]:
        if reset is not None:
            return {"alive": self.alive & ~reset}
        self.alive = torch.zeros_like(self.alive)
        new = self._advance(self.action_spec.zero())
        del new["reward"]
        return new

    def _report(self, **more: Tensor) -> TensorDictBase:
        return super()._report(alive=self.alive.clone(), **more)


def _drawn(seed: int | None) -> int:
    return int(torch.randint(2**31, ())) if seed is None else seed
