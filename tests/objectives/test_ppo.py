import math

import pytest
import torch
from tensordict import TensorDict
from tensordict.nn import NormalParamExtractor, TensorDictModule
from torchrl.modules import IndependentNormal, MaskedCategorical, ProbabilisticActor, TanhNormal
from torchrl.objectives import ClipPPOLoss

from sipo_trl.objectives import HeadValueNorm, LagrangeMultipliers, MultiHeadClipPPOLoss

CLIP, COEFF = 0.2, 0.01


def make_actor(distribution=IndependentNormal) -> ProbabilisticActor:
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), NormalParamExtractor())
    return ProbabilisticActor(
        TensorDictModule(net, in_keys=["observation"], out_keys=["loc", "scale"]),
        in_keys=["loc", "scale"],
        distribution_class=distribution,
        return_log_prob=True,
    )


def make_critic(heads: int) -> TensorDictModule:
    return TensorDictModule(torch.nn.Linear(3, heads), ["observation"], ["state_value"])


def make_batch(actor, critic, heads, shape=(6, 5)) -> TensorDict:
    """A batch collected with other weights than the actor's and the critic's."""
    with torch.no_grad():
        batch = actor(TensorDict({"observation": torch.randn(*shape, 3)}, shape))
        batch = critic(batch)
        batch["action_log_prob"] += 0.3 * torch.randn(shape)
        batch["state_value"] += 0.3 * torch.randn(*shape, heads)
    batch["advantage"] = torch.randn(*shape, heads)
    batch["value_target"] = 5 * torch.randn(*shape, heads)
    return batch


def total(losses: TensorDict) -> torch.Tensor:
    return sum(value for key, value in losses.items() if key.startswith("loss_"))


def test_one_head_is_torchrls_loss() -> None:
    actor, critic = make_actor(), make_critic(1)
    batch = make_batch(actor, critic, 1)
    ours = MultiHeadClipPPOLoss(
        actor, critic, huber_delta=1.0, clip_value=None, normalize_advantage="none"
    )
    theirs = ClipPPOLoss(actor, critic, clip_epsilon=CLIP, entropy_coeff=COEFF)
    mine, reference = ours(batch), theirs(batch)
    for key in ("loss_objective", "loss_critic", "loss_entropy", "kl_approx", "clip_fraction"):
        torch.testing.assert_close(mine[key], reference[key])
    gradients = [
        torch.autograd.grad(total(x), list(loss.parameters()))
        for loss, x in ((ours, mine), (theirs, reference))
    ]
    for own, reference_gradient in zip(*gradients, strict=True):
        torch.testing.assert_close(own, reference_gradient)


def test_heads_combine_as_one_weighted_reward() -> None:
    actor, critic = make_actor(), make_critic(3)
    batch = make_batch(actor, critic, 3)
    multipliers = LagrangeMultipliers(2, threshold=0.0)
    multipliers.value.copy_(torch.tensor([0.5, 2.0]))
    loss = MultiHeadClipPPOLoss(actor, critic, multipliers=multipliers, intrinsic_scale=0.1)
    single = batch.clone()
    combined = batch["advantage"] @ torch.tensor([1.0, 0.05, 0.2])
    combined = (combined - combined.mean()) / combined.std(correction=0)
    single["advantage"] = combined.unsqueeze(-1)
    plain = MultiHeadClipPPOLoss(actor, critic, normalize_advantage="none")
    torch.testing.assert_close(
        loss(batch)["loss_objective"], plain(single)["loss_objective"], rtol=1e-4, atol=1e-5
    )


def test_per_head_normalisation_makes_heads_scale_free() -> None:
    actor, critic = make_actor(), make_critic(2)
    batch = make_batch(actor, critic, 2)
    multipliers = LagrangeMultipliers(1, threshold=0.0, initial=1.0)
    losses = []
    for scale in (1.0, 1000.0):
        scaled = batch.clone()
        scaled["advantage"] = batch["advantage"] * torch.tensor([1.0, scale])
        losses.append(
            [
                MultiHeadClipPPOLoss(
                    actor, critic, multipliers=multipliers, normalize_advantage=mode
                )(scaled)["loss_objective"]
                for mode in ("per_head", "combined")
            ]
        )
    torch.testing.assert_close(losses[0][0], losses[1][0], rtol=1e-3, atol=1e-4)
    assert not torch.isclose(losses[0][1], losses[1][1], rtol=1e-2)


def huber(error: float, delta: float) -> float:
    return 0.5 * error**2 if abs(error) <= delta else delta * (abs(error) - 0.5 * delta)


@pytest.mark.parametrize("error", [-30.0, -3.0, 3.0, 30.0])
def test_huber_is_symmetric_and_turns_linear_at_its_delta(error) -> None:
    actor, critic = make_actor(), make_critic(2)
    batch = make_batch(actor, critic, 2)
    batch["value_target"] = critic(batch.clone())["state_value"].detach() + error
    loss = MultiHeadClipPPOLoss(
        actor, critic, multipliers=LagrangeMultipliers(1, 0.0), huber_delta=10.0, clip_value=None
    )
    assert loss(batch)["loss_critic"].item() == pytest.approx(2 * huber(error, 10.0), rel=1e-4)


def test_value_clipping_takes_the_worse_of_both() -> None:
    actor, critic = make_actor(), make_critic(1)
    batch = make_batch(actor, critic, 1)
    value = critic(batch.clone())["state_value"].detach()
    batch["state_value"] = value - 1.0  # the critic has moved up by 1, far beyond 0.2,
    batch["value_target"] = value  # and hit its target: the clipped value has not
    loss = MultiHeadClipPPOLoss(actor, critic, clip_value=0.2)
    assert loss(batch)["loss_critic"].item() == pytest.approx(0.5 * 0.8**2, rel=1e-4)
    critic_gradients = torch.autograd.grad(loss(batch)["loss_critic"], list(critic.parameters()))
    assert all(not gradient.any() for gradient in critic_gradients)


@pytest.mark.parametrize("coeff", [1.0, 0.03, 0.0])
def test_the_critics_heads_have_their_weights(coeff) -> None:
    actor, critic = make_actor(), make_critic(3)
    batch = make_batch(actor, critic, 3)
    loss = MultiHeadClipPPOLoss(
        actor,
        critic,
        multipliers=LagrangeMultipliers(2, threshold=0.0),
        clip_value=None,
        intrinsic_critic_coeff=coeff,
    )
    error = (critic(batch.copy())["state_value"] - batch["value_target"]).abs()
    heads = torch.where(error < 10, error.square() / 2, 10 * error - 50).mean((0, 1))
    expected = heads[0] + coeff * (heads[1] + heads[2])
    torch.testing.assert_close(loss(batch)["loss_critic"], expected)


def test_a_normalised_critic_learns_each_heads_scale() -> None:
    actor, critic = make_actor(), make_critic(2)
    batch = make_batch(actor, critic, 2, shape=(256,))
    targets = batch["observation"] @ torch.randn(3, 2) * torch.tensor([1000.0, 0.01]) + 50
    batch["value_target"] = targets
    norm = HeadValueNorm(shape=2)
    loss = MultiHeadClipPPOLoss(
        actor,
        critic,
        multipliers=LagrangeMultipliers(1, 0.0),
        value_norm=norm,
        clip_value=None,
    )
    optimiser = torch.optim.Adam(critic.parameters(), lr=0.05)
    for _ in range(300):
        optimiser.zero_grad()
        loss(batch)["loss_critic"].backward()
        optimiser.step()
    predicted = norm.denormalize(critic(batch.clone())["state_value"])
    error = (predicted - targets).std(0) / targets.std(0)
    assert (error < 0.05).all(), error


def test_value_statistics_move_in_training_only() -> None:
    actor, critic = make_actor(), make_critic(1)
    norm = HeadValueNorm(shape=1)
    loss = MultiHeadClipPPOLoss(actor, critic, value_norm=norm).eval()
    batch = make_batch(actor, critic, 1)
    loss(batch)
    assert norm.weight == 0
    loss.train()(batch)
    assert norm.weight > 0


class Team:
    """Three agents with masked categorical actions, some of them dead."""

    def __init__(self) -> None:
        actor = TensorDictModule(
            torch.nn.Linear(3, 4), [("agents", "observation")], [("agents", "logits")]
        )
        self.actor = ProbabilisticActor(
            actor,
            in_keys={"logits": ("agents", "logits"), "mask": ("agents", "action_mask")},
            out_keys=[("agents", "action")],
            distribution_class=MaskedCategorical,
            return_log_prob=True,
            log_prob_key=("agents", "action_log_prob"),
        )
        self.critic = TensorDictModule(
            torch.nn.Linear(3, 2), [("agents", "observation")], [("agents", "state_value")]
        )
        agents = TensorDict(
            {
                "observation": torch.randn(8, 5, 3, 3),
                "action_mask": torch.rand(8, 5, 3, 4) < 0.7,
            },
            [8, 5, 3],
        )
        agents["action_mask"][..., 0] = True
        self.batch = TensorDict({"agents": agents}, [8, 5])
        with torch.no_grad():
            self.critic(self.actor(self.batch))
        agents["advantage"], agents["value_target"] = torch.randn(2, 8, 5, 3, 2)
        agents["alive"] = torch.rand(8, 5, 3, 1) < 0.6

    def loss(self) -> MultiHeadClipPPOLoss:
        loss = MultiHeadClipPPOLoss(
            self.actor,
            self.critic,
            multipliers=LagrangeMultipliers(1, 0.0, initial=1.0),
            value_norm=HeadValueNorm(shape=2),
        )
        loss.set_keys(
            mask=("agents", "alive"),
            value=("agents", "state_value"),
            advantage=("agents", "advantage"),
            value_target=("agents", "value_target"),
        )
        return loss


def test_the_dead_change_nothing() -> None:
    team = Team()
    expected = team.loss()(team.batch)
    haunted = team.batch.clone()
    dead = ~haunted["agents", "alive"]
    for key, ghost in {"advantage": 1e6, "value_target": -1e6, "observation": 9.0}.items():
        haunted["agents", key] = torch.where(dead, ghost, haunted["agents", key])
    found = team.loss()(haunted)
    for key, value in expected.items():
        torch.testing.assert_close(found[key], value, msg=lambda text, k=key: f"{k}: {text}")


def test_the_living_are_averaged_as_if_alone() -> None:
    team = Team()
    alive = team.batch["agents", "alive"].squeeze(-1)
    masked = team.loss()(team.batch)
    alone = TensorDict({"agents": team.batch["agents"][alive]}, [int(alive.sum())])
    expected = team.loss()(alone)
    for key, value in expected.items():
        torch.testing.assert_close(masked[key], value, msg=lambda text, k=key: f"{k}: {text}")


@pytest.mark.parametrize("distribution", [IndependentNormal, TanhNormal])
def test_entropy_with_and_without_a_closed_form(distribution) -> None:
    actor, critic = make_actor(distribution), make_critic(1)
    batch = make_batch(actor, critic, 1, shape=(4000,))
    entropy = MultiHeadClipPPOLoss(actor, critic)(batch)["entropy"].item()
    dist = actor.get_dist(batch)
    if distribution is IndependentNormal:
        expected = dist.entropy().mean().item()
        assert entropy == pytest.approx(expected, rel=1e-5)
    else:
        expected = -dist.log_prob(dist.sample()).mean().item()
        assert entropy == pytest.approx(expected, abs=0.1)
    assert math.isfinite(entropy)


def test_runs_without_reading_the_device() -> None:
    team = Team()
    loss = team.loss().to("meta")
    losses = loss(team.batch.to("meta"))
    total(losses).backward()
    assert all(value.is_meta for value in losses.values())


def test_keys_given_as_keywords() -> None:
    actor, critic = make_actor(), make_critic(1)
    batch = make_batch(actor, critic, 1)
    loss = MultiHeadClipPPOLoss(actor, critic)
    loss.select_out_keys("loss_objective", "loss_critic")
    inputs = {key: batch[key] for key in loss.in_keys}
    objective, critic_loss = loss(**inputs)
    torch.testing.assert_close(objective, loss(batch)["loss_objective"])
    torch.testing.assert_close(critic_loss, loss(batch)["loss_critic"])


def test_what_is_missing_is_named() -> None:
    actor, critic = make_actor(), make_critic(2)
    batch = make_batch(actor, critic, 2)
    with pytest.raises(ValueError, match="give multipliers"):
        MultiHeadClipPPOLoss(actor, critic)(batch)
    with pytest.raises(KeyError, match="run MultiHeadGAE"):
        MultiHeadClipPPOLoss(actor, critic)(batch.exclude("advantage"))
    with pytest.raises(ValueError, match="normalize_advantage must be"):
        MultiHeadClipPPOLoss(actor, critic, normalize_advantage="each")
    batch["mask"] = torch.ones(6, 5, 2, dtype=torch.bool)
    loss = MultiHeadClipPPOLoss(actor, critic, multipliers=LagrangeMultipliers(1, 0.0))
    with pytest.raises(ValueError, match="does not fit"):
        loss(batch)
