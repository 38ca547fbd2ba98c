"""Several steps at once are what single steps would have been."""

import pytest
import torch

from sipo_trl.envs import HumanoidEnv, NavigationEnv, RunningEnv
from sipo_trl.envs.humanoid import HumanoidVisualEnv
from sipo_trl.models import make_actor
from sipo_trl.training import PlainCollector, ResumableCollector

COPIES, STEPS = 6, 30


def make(collector, kind=HumanoidEnv, distribution="normal", **options):
    env = kind(batch_size=[COPIES], seed=3, horizon=20, threads=1)
    torch.manual_seed(0)
    actor = make_actor(env, hidden=[16], distribution=distribution, observation_norm=True)
    if collector is PlainCollector:
        return PlainCollector(env, actor, frames_per_batch=COPIES * STEPS, **options)
    return ResumableCollector(
        env, actor, frames_per_batch=COPIES * STEPS, total_frames=-1, track_traj_ids=False
    )


@pytest.mark.parametrize("kind", [HumanoidEnv, HumanoidVisualEnv])
@pytest.mark.parametrize("distribution", ["normal", "tanh_normal"])
def test_batches_are_those_of_torchrl(kind, distribution) -> None:
    plain, stepped = (
        make(collector, kind, distribution) for collector in (PlainCollector, ResumableCollector)
    )
    batches = []
    for collector in (plain, stepped):
        torch.manual_seed(1)
        batches.append(torch.cat([collector.next().clone() for _ in range(2)], 1))
    ours, theirs = batches
    assert theirs["next", "terminated"].any()
    assert theirs["next", "truncated"].any()
    assert set(ours.keys(True, True)) == set(theirs.keys(True, True))
    for key in ours.keys(True, True):
        if (distribution, key) == ("tanh_normal", "action_log_prob"):
            torch.testing.assert_close(ours[key], theirs[key], atol=1e-5, rtol=1e-4)
        else:
            assert torch.equal(ours[key], theirs[key]), key


@pytest.mark.parametrize("compile_turns", [False, True])
def test_a_restored_collector_goes_on_with_the_same_bits(compile_turns) -> None:
    first, second = (make(PlainCollector, compile_turns=compile_turns) for _ in range(2))
    first.next()
    state, generator = first.state_dict(), torch.get_rng_state()
    expected = [first.next(), first.next()]
    second.next()
    second.load_state_dict(state)
    torch.set_rng_state(generator)
    for batch in expected:
        assert (second.next() == batch).all()


def test_it_goes_on_with_what_another_collector_began() -> None:
    stepped, plain = make(ResumableCollector), make(PlainCollector)
    stepped.next()
    generator = torch.get_rng_state()
    plain.load_state_dict(stepped.state_dict())
    expected = stepped.next().clone()
    torch.set_rng_state(generator)
    assert torch.equal(plain.next()["next", "observation"], expected["next", "observation"])


def test_it_suits_bodies_and_policies_without_a_memory_alone() -> None:
    humanoids = HumanoidEnv(batch_size=[2], threads=1)
    points = NavigationEnv(batch_size=[2])
    assert PlainCollector.suits(humanoids, make_actor(humanoids, hidden=[8]))
    assert not PlainCollector.suits(humanoids, make_actor(humanoids, hidden=[8], gru=8))
    assert not PlainCollector.suits(points, make_actor(points, hidden=[8]))


def test_compiled_steps_are_nearly_the_same() -> None:
    batches = []
    for compile_turns in (False, True):
        torch.manual_seed(0)
        env = HumanoidEnv(batch_size=[COPIES], seed=3, horizon=4, threads=1)
        actor = make_actor(env, hidden=[16], distribution="normal", observation_norm=True)
        size = {"frames_per_batch": COPIES * 6}
        collector = PlainCollector(env, actor, **size, compile_turns=compile_turns)
        batches.append([collector.next() for _ in range(2)])
    for plain, compiled in zip(*batches, strict=True):
        assert plain["next", "truncated"].any()
        assert set(plain.keys(True, True)) == set(compiled.keys(True, True))
        for key in plain.keys(True, True):
            torch.testing.assert_close(compiled[key], plain[key], atol=1e-3, rtol=1e-3)


def test_what_mujoco_begins_itself_cannot_be_compiled() -> None:
    env = RunningEnv("ant", batch_size=[2], threads=1)
    with pytest.raises(ValueError, match=r"cannot be compiled: leave collector\.compile out"):
        PlainCollector(env, make_actor(env, hidden=[8]), frames_per_batch=4, compile_turns=True)
