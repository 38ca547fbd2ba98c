import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torchrl.envs.utils import check_env_specs

sys.path.append(str(Path(__file__).parents[2] / "algorithms"))
sys.path.append(str(Path(__file__).parents[2] / "training"))
from running import Quiet, contents, start
from settings import small_config

from sipo_trl.archive import Archive
from sipo_trl.envs import HumanoidEnv, HumanoidVisualEnv
from sipo_trl.envs.config import HumanoidVisualConfig
from sipo_trl.envs.humanoid import humanoid_model
from sipo_trl.envs.humanoid.pictures import HumanoidPictures, _renderer
from sipo_trl.envs.humanoid.render import offscreen_platform
from sipo_trl.training.config import (
    AlgorithmConfig,
    BudgetConfig,
    CollectorConfig,
    EntryConfig,
    ITRConfig,
    WassersteinConfig,
)
from sipo_trl.training.run_folder import RunError

try:
    offscreen_platform()
    REASON = ""
except RuntimeError as error:
    REASON = str(error)
drawing = pytest.mark.skipif(bool(REASON), reason=REASON)


def standing(stack: int = 1) -> torch.Tensor:
    """A humanoid's pose at rest, some times over [1, 26 stack]."""
    return torch.tensor(humanoid_model().qpos0[2:], dtype=torch.float32).repeat(1, stack)


def visual_config() -> ITRConfig:
    return small_config(
        WassersteinConfig(delta=0.05, batch_size=4),
        env=HumanoidVisualConfig(horizon=12, views=8, threads=1),
        algorithm=AlgorithmConfig(name="test", entry=EntryConfig(episodes=2, max_states=6)),
        collector=CollectorConfig(num_envs=4, frames_per_batch=32),
        budget=BudgetConfig(name="test", frames=96),
    )


def test_the_policy_sees_what_it_sees_elsewhere_and_the_pose_is_told():
    env, other = HumanoidVisualEnv(batch_size=[3], seed=0), HumanoidEnv(batch_size=[3], seed=0)
    check_env_specs(env)
    env.set_seed(0)
    torch.manual_seed(0)
    data = env.rollout(5)
    torch.manual_seed(0)
    expected = other.rollout(5)
    for key in ("observation", ("next", "reward"), ("next", "torque")):
        assert (data[key] == expected[key]).all()
    assert (data["next", "diversity_state"][:, -1] == env.qpos[:, 2:].float()).all()


@drawing
def test_pictures_show_the_frames_in_their_order():
    lifted = standing()
    lifted[0, 5 + 5] = -1.5  # the right leg
    draw = HumanoidPictures()
    alone = draw(torch.cat([standing(), lifted]))
    assert alone.shape == (2, 3, 84, 84)
    assert alone.dtype == torch.uint8
    assert (alone[0] != alone[1]).any()
    stacked = draw(torch.cat([standing(2), torch.cat([standing(), lifted], 1)]))
    assert (stacked == torch.stack([alone[[0, 0]], alone]).flatten(1, 2)).all()


@drawing
def test_a_pose_that_occurs_often_is_drawn_once(monkeypatch):
    renderer, drawn = _renderer(), []
    draw = renderer.draw
    monkeypatch.setattr(renderer, "draw", lambda qpos: drawn.append(qpos) or draw(qpos))
    HumanoidPictures()(standing(4).repeat(3, 1))
    assert len(drawn) == 1


@drawing
def test_one_seed_one_result_and_a_stopped_run_goes_on_exactly(tmp_path):
    folder = start(visual_config(), tmp_path / "first")
    with pytest.raises(KeyboardInterrupt):
        start(visual_config(), tmp_path / "second", Quiet(save_at=5, stop_at=6))
    resumed = start(visual_config(), tmp_path / "second")
    assert contents(resumed) == contents(folder)
    archive = Archive.open(folder.path / "archive")
    for entry in archive:
        assert entry.states.dtype == torch.uint8
        assert entry.states.shape[1:] == (12, 84, 84)
        assert 2 <= len(entry.states) <= 6 + 2
        assert entry.data["torque"].shape == (len(entry.states), 21)
    assert archive[1].metrics["distances"][0] != 0


def test_where_nothing_can_draw_a_run_says_so_at_once(tmp_path, monkeypatch):
    failed = subprocess.CompletedProcess([], returncode=1)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: failed)
    monkeypatch.setattr("sipo_trl.envs.humanoid.pictures._renderer", _renderer.__wrapped__)
    monkeypatch.setattr(
        "sipo_trl.envs.humanoid.render.offscreen_platform", offscreen_platform.__wrapped__
    )
    with pytest.raises(RunError, match="install EGL or OSMesa"):
        start(visual_config(), tmp_path / "run")
