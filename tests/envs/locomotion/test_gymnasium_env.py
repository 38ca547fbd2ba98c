import gymnasium
import numpy as np
import pytest
import torch
from tensordict import TensorDict
from torchrl.envs.utils import check_env_specs

from sipo_trl.envs import RunningEnv

IDS = {
    "halfcheetah": "HalfCheetah-v5",
    "walker2d": "Walker2d-v5",
    "ant": "Ant-v5",
    "humanoid_v5": "Humanoid-v5",
}
every_body = pytest.mark.parametrize("name", IDS)


def close(actual: torch.Tensor, expected: object) -> None:
    expected = torch.as_tensor(expected, dtype=torch.float32).view(actual.shape)
    torch.testing.assert_close(actual, expected, rtol=1e-6, atol=1e-6)


@every_body
def test_it_is_a_valid_torchrl_environment(name):
    check_env_specs(RunningEnv(name, batch_size=[2], seed=0))


@every_body
def test_whole_episodes_equal_gymnasiums_own(name):
    copies, steps = 3, 200
    env = RunningEnv(name, batch_size=[copies], seed=0)
    data = env.reset()
    peers = [gymnasium.make(IDS[name]).unwrapped for _ in range(copies)]
    for i, peer in enumerate(peers):
        peer.reset(seed=0)
        peer.set_state(env.qpos[i].numpy(), env.qvel[i].numpy())
        close(data["observation"][i], peer._get_obs())
    low, high = env.action_spec.space.low[0], env.action_spec.space.high[0]
    np.testing.assert_array_equal(peers[0].action_space.low, low)
    np.testing.assert_array_equal(peers[0].action_space.high, high)

    generator = torch.Generator().manual_seed(0)
    alive, compared = [True] * copies, 0
    for _ in range(steps):
        action = low + (high - low) * torch.rand(copies, len(low), generator=generator)
        after = env.step(TensorDict(action=action, batch_size=[copies]))["next"]
        for i, peer in enumerate(peers):
            if alive[i]:
                observation, reward, terminated, _, _ = peer.step(action[i].numpy())
                close(after["observation"][i], observation)
                close(after["reward"][i], reward)
                assert after["terminated"][i].item() == terminated
                torques = torch.as_tensor(peer.data.actuator_force * peer.model.actuator_gear[:, 0])
                close(after["torque"][i], torques)
                alive[i], compared = not terminated, compared + 1
    assert compared > (40 if name == "humanoid_v5" else 60)


@every_body
def test_episodes_start_as_spread_as_gymnasiums(name):
    env = RunningEnv(name, batch_size=[400], seed=0)
    env.reset()
    peer, qpos, qvel = gymnasium.make(IDS[name]).unwrapped, [], []
    for seed in range(400):
        peer.reset(seed=seed)
        qpos.append(peer.data.qpos.copy())
        qvel.append(peer.data.qvel.copy())
    for ours, theirs in ((env.qpos, qpos), (env.qvel, qvel)):
        theirs = torch.as_tensor(np.stack(theirs))
        spread = theirs.std(0)
        torch.testing.assert_close(ours.std(0), spread, rtol=0.15, atol=0)
        assert ((ours.mean(0) - theirs.mean(0)).abs() < 0.3 * spread).all()


@pytest.mark.parametrize(
    ("name", "size"), [("halfcheetah", 17), ("walker2d", 17), ("ant", 27), ("humanoid_v5", 253)]
)
def test_the_diversity_state_leaves_out_torques_and_external_forces(name, size):
    data = RunningEnv(name, batch_size=[2], seed=0).rollout(3)["next"]
    assert (data["diversity_state"] == data["observation"][..., :size]).all()
    assert data["diversity_state"].shape[-1] == size


@every_body
def test_a_restored_environment_continues_bit_for_bit_whatever_the_threads(name):
    original = RunningEnv(name, batch_size=[3], seed=0, threads=1)
    original.rollout(20, break_when_any_done=False)
    snapshot = original.state_dict()
    data = TensorDict(action=original.action_spec.rand(), batch_size=[3])
    expected = original.step(data.clone())["next"], original.reset()
    restored = RunningEnv(name, batch_size=[3], seed=1, threads=2)
    restored.load_state_dict(snapshot)
    assert (restored.step(data)["next"] == expected[0]).all()
    assert (restored.reset() == expected[1]).all()


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match="no body 'snail': choose from halfcheetah"):
        RunningEnv("snail", batch_size=[1])
    with pytest.raises(ValueError, match="give 'cpu'"):
        RunningEnv("ant", batch_size=[1], device="cuda")
