import pytest
import torch

from sipo_trl.envs import GridWorld, paper_policies

PATHS = {
    "pi1": "DRRDDRRD",
    "pi2": "RDDRDDRR",
    "pi3": "RRRRDDDD",
    "pi4": "DRRRDDDR",
    "pi5": "DDDDRRRR",
}


@pytest.mark.parametrize("name", PATHS)
def test_each_policy_walks_its_path_to_the_goal(name):
    rollout = GridWorld(batch_size=[2]).rollout(8, paper_policies()[name])
    for actions in rollout["action"].tolist():
        assert "".join("RD"[action] for action in actions) == PATHS[name]
    assert rollout["next", "success"][:, -1].all()


def test_off_the_paths_they_differ_where_the_paper_says():
    maps = {name: policy.actions for name, policy in paper_policies().items()}
    assert (maps["pi1"] != maps["pi3"]).nonzero().tolist() == [[0, 0]]
    assert (maps["pi1"] != maps["pi2"]).sum() == 7
    # The paper's figure counts from 1: pi2 goes down at (2, 1), (1, 3) and (1, 4).
    assert [maps["pi2"][row, column].item() for row, column in [(1, 0), (0, 2), (0, 3)]] == [1] * 3


def test_probabilities_are_certain():
    policy = paper_policies()["pi2"]
    assert policy.probabilities.shape == (5, 5, 2)
    assert torch.equal(policy.probabilities.argmax(-1), policy.actions)
    assert (policy.probabilities.sum(-1) == 1).all()
