"""On the CPU: what of this was never seen on a GPU is the recorded graph and its stream."""

import sys

import pytest
import torch
from torchrl.envs.utils import check_env_specs

from sipo_trl.envs import HumanoidEnv
from sipo_trl.envs.humanoid import humanoid_model
from sipo_trl.envs.locomotion import WarpSimulator


@pytest.fixture(scope="module")
def warp_env() -> HumanoidEnv:
    """Compiled once for all tests; that takes most of a minute where nothing is cached."""
    reason = "mujoco_warp is not installed: pip install 'sipo-trl[warp]'"
    pytest.importorskip("mujoco_warp", reason=reason)
    return HumanoidEnv(batch_size=[4], backend="mujoco_warp", seed=0)


def test_humanoids_move_as_on_the_cpu(warp_env):
    exact = HumanoidEnv(batch_size=[4], seed=0)
    warp_env.set_seed(0)
    single, double = warp_env.reset(), exact.reset()
    generator = torch.Generator().manual_seed(0)
    for _ in range(12):  # into the first contacts, which then part them
        torch.testing.assert_close(single["observation"], double["observation"], rtol=0, atol=0.01)
        assert (single["terminated"] == double["terminated"]).all()
        action = 2 * torch.rand(4, 21, generator=generator) - 1
        single = warp_env.step(single.set("action", action))["next"]
        double = exact.step(double.set("action", action))["next"]
        torch.testing.assert_close(single["reward"], double["reward"], rtol=0, atol=0.01)
        torch.testing.assert_close(single["torque"], double["torque"], rtol=0.01, atol=0.5)


def test_it_is_a_valid_torchrl_environment_that_restores_exactly(warp_env):
    check_env_specs(warp_env)
    warp_env.rollout(20, break_when_any_done=False)
    snapshot = {name: value.clone() for name, value in warp_env.state_dict().items()}
    data = warp_env.rand_action(warp_env.reset())
    warp_env.load_state_dict(snapshot)
    first = warp_env.step(data.clone())["next"]
    warp_env.rollout(3, break_when_any_done=False)
    warp_env.load_state_dict(snapshot)
    assert (warp_env.step(data)["next"] == first).all()


def test_a_missing_package_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco_warp", None)
    monkeypatch.setitem(sys.modules, "warp", None)
    with pytest.raises(ImportError, match=r"sipo-trl\[warp\].*backend='mujoco'"):
        HumanoidEnv(batch_size=[2], backend="mujoco_warp")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_missing_gpu_says_what_else_to_do():
    pytest.importorskip("mujoco_warp", reason="mujoco_warp is not installed")
    with pytest.raises(RuntimeError, match="no GPU: give device='cpu'"):
        WarpSimulator(humanoid_model(), frame_skip=2, num_envs=2, device="cuda")
    with pytest.raises(ValueError, match="the backend mujoco steps on the CPU"):
        HumanoidEnv(batch_size=[2], device="cuda")
