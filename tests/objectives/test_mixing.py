import torch
from tensordict import TensorDict

from sipo_trl.objectives import LagrangeMultipliers, filtered_reward, summed_reward


def make_batch() -> TensorDict:
    following = {"reward": torch.randn(2, 5, 1), "intrinsic_reward": torch.randn(2, 5, 2)}
    return TensorDict({"next": following}, [2, 5])


def test_summed_reward_weighs_with_the_multipliers() -> None:
    batch = make_batch()
    multipliers = LagrangeMultipliers(2, threshold=0.0)
    multipliers.value.copy_(torch.tensor([2.0, 3.0]))
    mixed = summed_reward(batch, multipliers, 0.1)["next"]
    intrinsic = batch["next", "intrinsic_reward"]
    expected = batch["next", "reward"] + 0.2 * intrinsic[..., :1] + 0.3 * intrinsic[..., 1:]
    torch.testing.assert_close(mixed["reward"], expected)
    assert "intrinsic_reward" not in mixed.keys()
    assert "intrinsic_reward" in batch["next"].keys()


def test_filtered_reward_pays_the_task_only_where_all_constraints_hold() -> None:
    batch = make_batch()
    multipliers = LagrangeMultipliers(2, threshold=[0.5, 1.0])
    distances = torch.tensor([[0.6, 1.1], [0.4, 1.1]]).unsqueeze(1).expand(2, 5, 2)
    mixed = filtered_reward(batch, multipliers, 0.5, distances)["next", "reward"]
    torch.testing.assert_close(mixed[0], batch["next", "reward"][0])
    torch.testing.assert_close(
        mixed[1], 0.5 * batch["next", "intrinsic_reward"][1].sum(-1, keepdim=True)
    )
