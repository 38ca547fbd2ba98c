import pytest
import torch
from tensordict import TensorDict
from torch import nn
from torchrl.envs.utils import check_env_specs

from sipo_trl.envs import GridPolicy, GridWorld

RIGHT, DOWN = 0, 1


@pytest.mark.parametrize("batch_size", [(), (3,), (2, 3)])
def test_it_is_a_valid_torchrl_environment(batch_size):
    check_env_specs(GridWorld(batch_size=batch_size))


def test_moves_are_right_and_down_and_stop_at_the_border():
    env = GridWorld(size=3, batch_size=[3])
    data = env.reset()
    paths = [[DOWN, RIGHT, DOWN, RIGHT], [RIGHT, RIGHT, RIGHT, DOWN], [DOWN, DOWN, DOWN, DOWN]]
    cells = []
    for action in torch.tensor(paths).T:
        data = env.step(data.set("action", action))["next"]
        cells.append(data["diversity_state"].tolist())
    assert cells == [
        [[1, 0], [0, 1], [1, 0]],
        [[1, 1], [0, 2], [2, 0]],
        [[2, 1], [0, 2], [2, 0]],
        [[2, 2], [1, 2], [2, 0]],
    ]
    assert data["success"].flatten().tolist() == [True, False, False]
    assert data["reward"].flatten().tolist() == [1.0, 0.0, 0.0]
    assert data["terminated"].flatten().tolist() == [True, False, False]
    assert data["done"].all()  # the horizon leaves no time for detours


@pytest.mark.parametrize("size", [2, 5, 8])
def test_the_horizon_is_the_length_of_a_shortest_path(size):
    edge = torch.full((size, size), RIGHT)
    edge[:, -1] = DOWN
    env = GridWorld(size=size)
    rollout = env.rollout(100, GridPolicy(edge))
    assert len(rollout) == env.horizon == 2 * (size - 1)
    assert rollout["next", "success"].flatten().tolist() == [False] * (env.horizon - 1) + [True]


def test_nothing_is_read_on_the_host_in_a_step():
    env = GridWorld(batch_size=[4])
    nn.Module.to(env, "meta")
    action = torch.zeros(4, dtype=torch.int64, device="meta")
    assert env._step(TensorDict(action=action, batch_size=[4]))["observation"].shape == (4, 2)


def test_a_grid_needs_somewhere_to_go():
    with pytest.raises(ValueError, match="at least 2 cells"):
        GridWorld(size=1)
