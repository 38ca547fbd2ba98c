"""The grid world in which the paper compares diversity measures (Sec. 4.1, App. A2)."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torchrl.data import Categorical, Unbounded

from sipo_trl.envs.point import PointEnv

RIGHT, DOWN = 0, 1


class GridWorld(PointEnv):
    """Walk from the top left to the bottom right corner of a grid, by steps right and down.

    The keys are those of :class:`~sipo_trl.envs.point.PointEnv`; ``observation`` [*, 2] and
    ``diversity_state`` [*, 2] are both (row, column), the ``action`` [*] is 0 for right and 1 for
    down. A step against the border is lost. As the horizon is the length of the shortest paths,
    every episode that succeeds is one of them.

    Args:
        size: cells along each side.

    Keyword Args:
        batch_size: number of copies, as a shape.
        device: where the copies live.

    Examples:
        >>> from sipo_trl.envs import paper_policies
        >>> rollout = GridWorld().rollout(8, paper_policies()["pi3"])
        >>> rollout["diversity_state"][:6].int().tolist()
        [[0, 0], [0, 1], [0, 2], [0, 3], [0, 4], [1, 4]]
        >>> rollout["next", "success"][-1]
        tensor([True])
    """

    moves: Tensor

    def __init__(
        self,
        size: int = 5,
        *,
        batch_size: Sequence[int] = (),
        device: torch.device | str | None = None,
    ) -> None:
        if size < 2:
            raise ValueError(f"size is {size}: give at least 2 cells, to have somewhere to go.")
        shape = torch.Size(batch_size)
        super().__init__(
            horizon=2 * (size - 1),
            action_spec=Categorical(2, shape=shape, dtype=torch.int64, device=device),
            observation_spec={"observation": Unbounded((*shape, 2), device=device)},
            batch_size=shape,
            device=device,
        )
        self.size = size
        moves = torch.tensor([[0.0, 1.0], [1.0, 0.0]], device=device)  # indexed by RIGHT and DOWN
        self.register_buffer("moves", moves, persistent=False)

    def _move(self, action: Tensor) -> Tensor:
        return (self.position + self.moves[action]).clamp(max=self.size - 1)

    def _observe(self) -> dict[str, Tensor]:
        return {
            "observation": self.position.clone(),
            "success": (self.position == self.size - 1).all(-1, keepdim=True),
        }
