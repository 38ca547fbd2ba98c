"""The five optimal policies of the paper's grid-world figure, as complete maps."""

import torch
from tensordict import TensorDictBase
from tensordict.nn import TensorDictModuleBase
from torch import Tensor
from torch.nn import functional as F

from sipo_trl.envs.gridworld import DOWN, RIGHT

PATHS = {
    "pi1": "DRRDDRRD",
    "pi2": "RDDRDDRR",
    "pi3": "RRRRDDDD",
    "pi4": "DRRRDDDR",
    "pi5": "DDDDRRRR",
}


class GridPolicy(TensorDictModuleBase):
    """Deterministic policy that looks its action up in a map of the grid.

    Args:
        actions: action in each cell [size, size].

    Examples:
        >>> from sipo_trl.envs import GridWorld
        >>> always_right = GridPolicy(torch.zeros(5, 5, dtype=torch.int64))
        >>> GridWorld().rollout(8, always_right)["next", "success"].any()
        tensor(False)
    """

    actions: Tensor

    def __init__(self, actions: Tensor) -> None:
        super().__init__()
        self.in_keys = ["observation"]
        self.out_keys = ["action"]
        self.register_buffer("actions", actions)

    @property
    def probabilities(self) -> Tensor:
        """Action distribution in each cell [size, size, 2]."""
        return F.one_hot(self.actions, 2).double()

    def forward(self, tensordict: TensorDictBase) -> TensorDictBase:
        """Write the ``action`` for the cell in ``observation``."""
        row, column = tensordict.get("observation").long().unbind(-1)
        return tensordict.set("action", self.actions[row, column])


def paper_policies() -> dict[str, GridPolicy]:
    """The policies pi1 to pi5 on the 5x5 grid, each by its name in the paper.

    Cells off a policy's path matter to the action-based measures. The paper lets pi1 and pi3
    agree everywhere but at the start, and pi2 go down in three cells where they go right; where
    none of the three comes by, all agree.

    Examples:
        >>> policies = paper_policies()
        >>> (policies["pi1"].actions != policies["pi3"].actions).nonzero().tolist()
        [[0, 0]]
    """
    common = torch.full((5, 5), RIGHT)
    common[:, -1] = DOWN
    common = _with_path(common, PATHS["pi1"])
    maps = {name: _with_path(common, path) for name, path in PATHS.items()}
    maps["pi2"][[1, 0, 0], [0, 2, 3]] = DOWN
    return {name: GridPolicy(actions) for name, actions in maps.items()}


def _with_path(actions: Tensor, path: str) -> Tensor:
    """The map [5, 5], changed to follow a path from the start."""
    actions = actions.clone()
    row = column = 0
    for letter in path:
        actions[row, column] = DOWN if letter == "D" else RIGHT
        row, column = row + (letter == "D"), column + (letter == "R")
    return actions
