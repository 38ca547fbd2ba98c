import torch
from tensordict import TensorDict

from sipo_trl.models import ObservationNorm, build_actor, update_norms


def test_statistics_are_those_of_all_features_seen() -> None:
    torch.manual_seed(0)
    parts = [30 + 3 * torch.randn(rows, 4) for rows in (1, 50, 7, 200)]
    norm = ObservationNorm(4)
    for part in parts:
        norm.update(part.view(1, -1, 4))
    seen = torch.cat(parts)
    torch.testing.assert_close(norm.mean, seen.mean(0))
    torch.testing.assert_close(norm.variance, seen.var(0, correction=0))
    torch.testing.assert_close(
        norm(seen), (seen - seen.mean(0)) / seen.std(0, correction=0), rtol=1e-4, atol=1e-4
    )


def test_outliers_are_bounded_and_a_constant_feature_is_harmless() -> None:
    norm = ObservationNorm(1)
    norm.update(torch.full((100, 1), 7.0))
    assert norm(torch.tensor([[7.0], [1e9], [-1e9]])).flatten().tolist() == [0, 10, -10]


def test_a_policy_keeps_its_statistics_with_its_weights() -> None:
    description = {
        "observations": [{"key": "observation", "shape": [3]}, {"key": "goal", "shape": [2]}],
        "action": {"key": "action", "kind": "categorical", "size": 2},
        "network": {"observation_norm": True},
    }
    actor = build_actor(**description)
    batch = TensorDict(
        observation=5 + torch.randn(8, 6, 3), goal=torch.randn(8, 6, 2), batch_size=[8, 6]
    )
    before = actor(batch.clone())["logits"]
    update_norms(actor, batch)
    after = actor(batch.clone())["logits"]
    assert not torch.allclose(before, after)
    copy = build_actor(**actor.policy_spec["kwargs"])
    copy.load_state_dict(actor.state_dict())
    assert torch.equal(copy(batch.clone())["logits"], after)


def test_runs_on_meta_tensors() -> None:
    norm = ObservationNorm(4).to("meta")
    norm.update(torch.empty(8, 4, device="meta"))
    assert norm(torch.empty(8, 4, device="meta")).shape == (8, 4)
