import math

import pytest
import torch
from settings import small_config
from torch._inductor.cpu_vec_isa import pick_vec_isa
from torchrl.envs import EnvBase

from sipo_trl.measures import FinalStateMeasure, RBFMeasure, WassersteinMeasure
from sipo_trl.objectives import LagrangeMultipliers
from sipo_trl.training import Attempt, Learner, RunError
from sipo_trl.training.config import CollectorConfig, NetworkConfig, PPOConfig

REFERENCES = [torch.randn(10, 2) * 0.3, torch.randn(7, 2) * 0.3 + 0.5]


def make_env() -> EnvBase:
    return small_config().env.make(8, seed=0)


def make_learner(measure=None, rewards="heads", **ppo) -> Learner:
    measure = measure or FinalStateMeasure(REFERENCES)
    return Learner(
        make_env(),
        measure,
        LagrangeMultipliers(measure.num_references, 0.4, lr=0.5),
        network=NetworkConfig(hidden=[16]),
        ppo=PPOConfig(epochs=2, minibatches=2, **ppo),
        rewards=rewards,
    )


@torch.no_grad()
def collect(learner: Learner, steps: int = 20):
    return make_env().rollout(steps, learner.policy, break_when_any_done=False)


@pytest.mark.parametrize("rewards", ["heads", "summed", "filter"])
@pytest.mark.parametrize(
    "measure", [FinalStateMeasure, RBFMeasure, WassersteinMeasure], ids=lambda m: m.__name__
)
def test_an_update_moves_all_that_learns(rewards, measure) -> None:
    torch.manual_seed(0)
    learner = make_learner(measure(REFERENCES), rewards)
    before = {
        name: {k: v.clone() for k, v in part.state_dict().items()}
        for name, part in learner.components().items()
        if name in ("actor", "critic", "measure")
    }
    metrics = learner.update(collect(learner))
    for name in ("actor", "critic"):
        after = learner.components()[name].state_dict()
        assert any(not torch.equal(after[k], v) for k, v in before[name].items())
    learned = any(
        not torch.equal(learner.components()["measure"].state_dict()[k], v)
        for k, v in before["measure"].items()
    )
    assert learned == (measure is WassersteinMeasure)
    assert metrics["distance"].shape == metrics["multiplier"].shape == (2,)
    assert all(math.isfinite(metrics[k]) for k in metrics.keys() if k.startswith("loss_"))


def test_metrics_are_those_of_finished_episodes() -> None:
    learner = make_learner()
    batch = collect(learner)
    following = batch["next"].clone()
    done = following["done"].squeeze(-1)
    metrics = learner.update(batch)
    assert metrics["episodes"] == done.sum()
    assert metrics["success"] == following["success"].squeeze(-1)[done].float().mean()
    final = FinalStateMeasure(REFERENCES).reward(following["diversity_state"])[done].mean(0)
    torch.testing.assert_close(metrics["distance"], final)
    torch.testing.assert_close(metrics["multiplier"], (0.5 * (0.4 - final)).clamp(0, 10))


def test_distances_over_steps_do_not_depend_on_when_episodes_end() -> None:
    torch.manual_seed(0)
    means = []
    for mean_over in ("horizon", "steps"):
        measure = RBFMeasure(REFERENCES, horizon=50, variance=0.5, mean_over=mean_over)
        learner = make_learner(measure)
        batch = collect(learner, steps=30)
        batch["next", "done"] = torch.zeros_like(batch["next", "done"])
        batch["next", "done"][:, 9::10] = True  # a fifth of the horizon
        batch["next", "diversity_state"] = torch.zeros_like(batch["next", "diversity_state"])
        means.append(learner.update(batch)["distance"])
    reward = 50 * measure.reward(torch.zeros(1, 2))[0]
    torch.testing.assert_close(means[0], reward / 5)
    torch.testing.assert_close(means[1], reward)


@pytest.mark.parametrize(("mean_over", "paid"), [("horizon", True), ("steps", False)])
def test_over_steps_it_pays_neither_to_end_nor_to_go_on(mean_over, paid) -> None:
    torch.manual_seed(0)
    learner = make_learner(RBFMeasure(REFERENCES, variance=0.5, mean_over=mean_over))
    batch = collect(learner, steps=30)
    batch["next", "diversity_state"] = torch.zeros_like(batch["next", "diversity_state"])
    learner.update(batch)
    assert (batch["next", "intrinsic_reward"].abs().max() > 1e-6) == paid


def test_lost_episodes_count_as_nothing_else() -> None:
    torch.manual_seed(0)
    learner = make_learner()
    batch = collect(learner, steps=30)
    done = batch["next", "done"]
    expected = learner.update(batch.clone())
    assert "lost" not in expected.keys()
    first = (done.cumsum(1) == 1) & done
    learner = make_learner()
    batch["next", "lost"] = first
    metrics = learner.update(batch)
    assert metrics["lost"] == first.sum() > 0
    assert metrics["episodes"] == expected["episodes"] - first.sum()


def test_practice_is_learned_from_but_counts_for_nothing() -> None:
    torch.manual_seed(0)
    learner = make_learner()
    batch = collect(learner, steps=30)
    before = [parameter.clone() for parameter in learner.actor.parameters()]
    batch["next", "practice"] = torch.ones_like(batch["next", "done"])
    metrics = learner.update(batch)
    assert metrics["episodes"] == 0
    assert metrics["distance"].isnan().all()
    changed = [(a != b).any() for a, b in zip(before, learner.actor.parameters(), strict=True)]
    assert any(changed)


def test_critics_do_not_look_at_practice() -> None:
    torch.manual_seed(0)
    learner = make_learner(WassersteinMeasure(REFERENCES))
    batch = collect(learner)
    batch["next", "practice"] = torch.rand_like(batch["next", "reward"]) < 0.5
    alone = WassersteinMeasure(REFERENCES)
    alone.load_state_dict(learner.distance.measure.state_dict())
    alone.update(batch["next", "diversity_state"][~batch["next", "practice"].squeeze(-1)])
    learner.update(batch)
    for name, value in learner.distance.measure.state_dict().items():
        assert torch.equal(value, alone.state_dict()[name])


def test_good_episodes_solve_the_task_within_all_constraints() -> None:
    learner = make_learner()
    learner.solved = 0.5
    batch = collect(learner)
    following = batch["next"].clone()
    done = following["done"].squeeze(-1)
    metrics = learner.update(batch)
    far = FinalStateMeasure(REFERENCES).reward(following["diversity_state"]) >= 0.4
    good = far.all(-1) & (following["reward"].squeeze(-1) >= 0.5)
    assert 0 < good[done].float().mean() < 1
    assert metrics["good"] == good[done].float().mean()


def test_an_empty_archive_is_plain_ppo() -> None:
    learner = make_learner(FinalStateMeasure([]), normalize_intrinsic=True)
    metrics = learner.update(collect(learner))
    assert metrics["distance"].shape == (0,)
    assert learner.critic(make_env().reset())["state_value"].shape == (8, 1)


def test_it_learns_to_reach_a_landmark_and_then_to_keep_away() -> None:
    torch.manual_seed(0)
    config = small_config()
    config.env.horizon, config.network.hidden = 60, [32, 32]
    config.collector.num_envs, config.collector.frames_per_batch = 32, 1024
    config.ppo = PPOConfig(entropy=0.0, discount=0.99, minibatches=2, epochs=5, actor_lr=2e-3)
    first = Attempt(config, config.env.make(32, seed=0), FinalStateMeasure([]))
    rows = [first.step() for _ in range(25)]
    assert rows[-1]["success"] > 0.9
    batch = first.collector.next()["next"]
    finals = batch["diversity_state"][batch["done"].squeeze(-1)]
    second = Attempt(
        config, config.env.make(32, seed=0), FinalStateMeasure([finals], saturation=0.4)
    )
    second.learner.multipliers.value.fill_(5.0)
    rows = [second.step() for _ in range(25)]
    assert max(row["distance_1"] for row in rows[-5:]) > rows[0]["distance_1"]


def test_recurrent_policies_learn_from_chunks() -> None:
    config = small_config(network=NetworkConfig(hidden=[8], gru=8))
    attempt = Attempt(config, config.env.make(8, seed=0), FinalStateMeasure(REFERENCES))
    row = attempt.step()
    assert math.isfinite(row["loss_objective"])
    # Chunks replayed in sequence mode give the log-probabilities of collection: no ratio moves
    # before the first gradient step.
    config.ppo.epochs = config.ppo.minibatches = 1
    fresh = Attempt(config, config.env.make(8, seed=0), FinalStateMeasure(REFERENCES))
    assert fresh.step()["kl_approx"] == pytest.approx(0.0, abs=1e-5)


def updated_weights(**ppo) -> torch.Tensor:
    torch.manual_seed(0)
    learner = make_learner(**ppo)
    batch = collect(learner)
    torch.manual_seed(1)
    for _ in range(2):  # parallel ones learn at the same time from the second on
        learner.update(batch.clone())
    return torch.cat([p.flatten() for p in learner.policy.parameters()])


@pytest.mark.parametrize("parallel", [False, True])
def test_compiled_gradients_learn_the_same(parallel) -> None:
    # Two learners in turn, whose shapes are alike and whose settings are not.
    for entropy in (0.0, 0.5):
        plain = updated_weights(entropy=entropy)
        compiled = updated_weights(entropy=entropy, compile=True, parallel=parallel)
        torch.testing.assert_close(compiled, plain, rtol=1e-4, atol=1e-5)
    assert (updated_weights(entropy=0.0) - plain).abs().max() > 1e-4


def test_only_compiled_networks_learn_at_the_same_time() -> None:
    with pytest.raises(ValueError, match=r"ppo\.parallel.*set ppo\.compile=true"):
        PPOConfig(parallel=True)


@pytest.mark.skipif(not torch.cpu._is_avx2_supported(), reason="knows vectors of x86 only")
def test_compiled_gradients_use_vector_instructions() -> None:
    updated_weights(compile=True)
    assert pick_vec_isa().bit_width() >= 256


def test_products_in_low_precision_learn_nearly_the_same() -> None:
    start, exact, rough = (
        updated_weights(actor_lr=rate, precision=precision)
        for rate, precision in ((0.0, "float32"), (5e-4, "float32"), (5e-4, "bfloat16"))
    )
    assert 0 < (rough - exact).norm() < 0.3 * (exact - start).norm()


def test_a_reward_that_is_no_number_stops_the_run() -> None:
    config = small_config()
    attempt = Attempt(config, config.env.make(8, seed=0), FinalStateMeasure([]))
    attempt.collector.env.landmarks.fill_(torch.nan)
    with pytest.raises(RuntimeError, match="no longer a number"):
        attempt.step()


def test_points_have_no_steps_to_compile() -> None:
    config = small_config(collector=CollectorConfig(num_envs=8, frames_per_batch=80, compile=True))
    with pytest.raises(RunError, match=r"collector\.compile is for humanoids"):
        Attempt(config, config.env.make(8, seed=0), FinalStateMeasure([]))
