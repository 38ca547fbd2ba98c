import pytest
import torch
from tensordict import TensorDict
from torchrl.envs import CatFrames, TransformedEnv
from torchrl.envs.utils import check_env_specs

from sipo_trl.envs import HumanoidEnv
from sipo_trl.training.collector import ResumableCollector


def flail(env: HumanoidEnv, steps: int, seed: int = 0) -> TensorDict:
    """Transitions [steps, N] under random actions, with the resets that TorchRL makes."""
    generator = torch.Generator().manual_seed(seed)
    data, transitions = env.reset(), []
    for _ in range(steps):
        data["action"] = 2.4 * torch.rand(*env.batch_size, 21, generator=generator) - 1.2
        transition, data = env.step_and_maybe_reset(data)
        transitions.append(transition.clone())
    return torch.stack(transitions)


def test_it_is_a_valid_torchrl_environment():
    check_env_specs(HumanoidEnv(batch_size=[3], seed=0))


def test_a_seed_decides_everything_whatever_the_threads():
    first = flail(HumanoidEnv(batch_size=[8], seed=5, threads=1), 60)
    assert first["next", "terminated"].any()
    assert (flail(HumanoidEnv(batch_size=[8], seed=5, threads=3), 60) == first).all()
    env = HumanoidEnv(batch_size=[8], seed=6)
    other = flail(env, 60)
    assert (other["observation"][0] != first["observation"][0]).any()
    env.set_seed(5)
    assert (flail(env, 60) == first).all()


def test_copies_and_episodes_start_differently():
    env = HumanoidEnv(batch_size=[4], seed=0)
    starts = torch.cat([env.reset()["observation"][:, 12:33], env.reset()["observation"][:, 12:33]])
    assert torch.pdist(starts).min() > 0.05


def test_the_diversity_state_knows_no_torque_force_or_action():
    data = flail(HumanoidEnv(batch_size=[2], seed=0), 5)["next"]
    assert (data["diversity_state"] == data["observation"][..., :54]).all()
    assert data["diversity_state"].shape == (5, 2, 54)
    forces = data["observation"][..., 54:75]
    torch.testing.assert_close(forces, (0.01 * data["torque"]).clamp(-5, 5))


def test_a_fall_terminates_and_the_last_step_truncates():
    data = flail(HumanoidEnv(batch_size=[16], seed=0, horizon=25), 100)
    following = data["next"]
    fallen = following["observation"][..., :1] < 0.8
    assert fallen.any()
    assert (following["terminated"] == fallen).all()
    assert (following["reward"][fallen] == -1).all()
    assert (following["reward"][~fallen] > -1).all()
    assert following["truncated"].any()
    assert (following["done"] == (fallen | following["truncated"])).all()
    assert (following["success"] == (following["truncated"] & ~fallen)).all()


def test_an_episode_is_truncated_after_a_thousand_steps():
    env = HumanoidEnv(batch_size=[1], seed=0)
    env.reset()
    env.step_count = torch.full_like(env.step_count, 998)
    data = TensorDict(action=torch.zeros(1, 21), batch_size=[1])
    assert [env.step(data.clone())["next", "truncated"].item() for _ in range(2)] == [False, True]


def test_a_partial_reset_leaves_the_other_copies_alone():
    env = HumanoidEnv(batch_size=[4], seed=0)
    data = flail(env, 5)[-1]["next"].exclude("reward")
    before = {name: value.clone() for name, value in env.named_buffers()}
    report = env.reset(data.set("_reset", torch.tensor([[1], [0], [0], [1]]).bool()))
    for name in ("qpos", "qvel", "warmstart", "observation", "torque", "step_count", "episode"):
        changed = (getattr(env, name) != before[name]).any(-1).tolist()
        assert changed == [True, False, False, True], name
    assert (report["observation"] == env.observation).all()
    assert env.step_count.flatten().tolist() == [0, 5, 5, 0]


def test_copies_that_have_finished_wait_for_the_others():
    env = HumanoidEnv(batch_size=[2], seed=0)
    last = flail(env, 5)[-1]["next"]
    qpos = env.qpos.clone()
    data = TensorDict(action=torch.ones(2, 21), batch_size=[2])
    after = env.step(data.set("_step", torch.tensor([False, True])))["next"]
    assert (env.qpos == qpos).all(-1).tolist() == [True, False]
    assert (after["observation"] == last["observation"]).all(-1).tolist() == [True, False]
    assert after["reward"].ne(0).flatten().tolist() == [False, True]
    assert env.step_count.flatten().tolist() == [5, 6]


def test_a_restored_environment_continues_bit_for_bit():
    original = HumanoidEnv(batch_size=[8], seed=0)
    flail(original, 33)
    snapshot = original.state_dict()
    data = TensorDict(action=torch.rand(8, 21), batch_size=[8])
    expected = original.step(data.clone())["next"], original.reset()
    flail(original, 7)
    restored = HumanoidEnv(batch_size=[8], seed=99)
    restored.load_state_dict(snapshot)
    for actual, wanted in zip(
        (restored.step(data)["next"], restored.reset()), expected, strict=True
    ):
        assert set(actual.keys()) == set(wanted.keys())
        assert (actual == wanted).all()


def test_a_resumed_collector_yields_the_same_bits():
    def collector() -> ResumableCollector:
        env = TransformedEnv(
            HumanoidEnv(batch_size=[4], seed=0, horizon=9),
            CatFrames(4, dim=-1, in_keys=["diversity_state"]),
        )
        return ResumableCollector(
            env, env.rand_action, frames_per_batch=80, total_frames=-1, track_traj_ids=False
        )

    first, second = collector(), collector()
    first.next()
    state, draws = first.state_dict(), torch.get_rng_state()
    expected = first.next().clone()
    second.load_state_dict(state)
    torch.set_rng_state(draws)
    assert (second.next() == expected).all()


@pytest.mark.parametrize(
    ("name", "value"),
    [("qpos", torch.nan), ("qpos", torch.inf), ("qvel", torch.nan), ("qvel", 1e5)],
)
def test_a_body_that_breaks_down_ends_its_own_episode_only(name, value, monkeypatch):
    env, sound = (HumanoidEnv(batch_size=[3], seed=0) for _ in range(2))
    step = env.simulator.step

    def broken_step(motion, control):
        motion = step(motion, control)
        getattr(motion, name)[1, 9] = value
        motion.sensors[1] = value
        return motion

    monkeypatch.setattr(env.simulator, "step", broken_step)
    expected, actual = flail(sound, 3), flail(env, 3)
    others = torch.tensor([0, 2])
    assert (actual[:, others] == expected[:, others]).all()
    following = actual["next"][:, 1]
    assert following["terminated"].all()
    assert (following["reward"] == -1).all()
    assert all(leaf.isfinite().all() for leaf in actual.values(True, True))


def test_writing_to_what_it_returns_does_not_move_the_bodies():
    env, other = (HumanoidEnv(batch_size=[2], seed=0) for _ in range(2))
    for value in env.reset().values():
        value.fill_(1)
    other.reset()
    data = TensorDict(action=torch.zeros(2, 21), batch_size=[2])
    assert (env.step(data.clone()) == other.step(data)).all()


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match=r"batch_size is \[2, 3\]"):
        HumanoidEnv(batch_size=[2, 3])
    with pytest.raises(ValueError, match="horizon is 0"):
        HumanoidEnv(batch_size=[2], horizon=0)
    with pytest.raises(ValueError, match=r"'bullet': .*mujoco, mujoco_warp.*isaacgym.*isaaclab"):
        HumanoidEnv(batch_size=[2], backend="bullet")
