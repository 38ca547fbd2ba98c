"""The humanoid in Isaac Lab."""

from collections.abc import Sequence

import torch
from torch import Tensor

from sipo_trl.envs.humanoid.isaac import IsaacHumanoidEnv
from sipo_trl.envs.humanoid.isaac_lab_simulation import IsaacLabSimulation
from sipo_trl.envs.humanoid.task import DIVERSITY, JOINTS

OBSERVATIONS = DIVERSITY.stop + JOINTS


class IsaacLabHumanoidEnv(IsaacHumanoidEnv):
    """Isaac Lab's humanoids, in this process.

    The keys are those of :class:`~sipo_trl.envs.humanoid.HumanoidEnv`. The observation [N, 75] has
    no joint and no foot forces: behind the 54 columns of the ``diversity_state`` stands the last
    action. The ``torque`` is what the simulation applied to the joints.

    Isaac Lab starts a finished copy anew within its last step and keeps the last observation of
    the episode to itself, so the last one that is known, and its torque, stand for it.

    A process can have one simulation only. Environments that are made later share it with the
    first and may not have more copies. Whenever another one steps or is reset than before, it
    starts with new episodes, and those of the one before are truncated in its next step.

    Keyword Args:
        batch_size: number of copies [N].
        device: where Isaac simulates and where the tensors live.
        seed: decides the start of every episode; from torch's global generator if ``None``.
        horizon: steps after which an episode is truncated.
    """

    def __init__(
        self,
        *,
        batch_size: Sequence[int],
        device: torch.device | str = "cuda:0",
        seed: int | None = None,
        horizon: int = 1000,
    ) -> None:
        super().__init__(OBSERVATIONS, batch_size=batch_size, device=device)
        count = self.batch_size.numel()
        self._simulation = IsaacLabSimulation.shared(count, device=str(device), horizon=horizon)
        self._set_seed(seed)

    def _set_seed(self, seed: int | None) -> None:
        self._simulation.seed(int(torch.randint(2**31, ())) if seed is None else seed)

    def _advance(self, action: Tensor) -> dict[str, Tensor]:
        self._simulation.serve(self)
        step = self._simulation.step(action)
        done = step["done"]
        return {
            "observation": torch.where(done, self.observation, step["observation"]),
            "torque": torch.where(done, self.torque, step["torque"]),
            "reward": step["reward"],
            "terminated": step["terminated"],
            "truncated": step["truncated"],
        }

    def _begin(self, reset: Tensor | None) -> dict[str, Tensor]:
        self._simulation.serve(self)
        if reset is None:
            reset = torch.ones_like(self.terminated)
        start = self._simulation.start(reset)
        return {
            "observation": torch.where(reset, start, self.observation),
            "torque": self.torque.masked_fill(reset, 0),
        }
