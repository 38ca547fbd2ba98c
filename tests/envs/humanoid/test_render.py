import subprocess

import numpy as np
import pytest
import torch
from PIL import Image
from torchrl.envs import CatFrames, TransformedEnv

from sipo_trl.envs import HumanoidEnv, NavigationEnv, RunningEnv
from sipo_trl.envs.humanoid import humanoid_model
from sipo_trl.envs.humanoid.render import BodyRenderer, draw_bodies, film, offscreen_platform

try:
    offscreen_platform()
except RuntimeError as error:
    pytestmark = pytest.mark.skip(reason=str(error))


def is_body(picture: np.ndarray) -> np.ndarray:
    """The body is orange, all else is blue, grey or black."""
    red, _, blue = np.moveaxis(picture.astype(int), -1, 0)
    return red > blue + 20


def test_a_picture_shows_the_body_upright_in_its_middle():
    model = humanoid_model()
    renderer = BodyRenderer(model, width=84, height=84, plain=True)
    rows, columns = np.nonzero(is_body(renderer.draw(torch.tensor(model.qpos0))))
    renderer.close()
    assert len(rows) > 100
    assert rows.max() - rows.min() > 2 * (columns.max() - columns.min())
    assert abs(np.median(columns) - 42) < 8


def test_the_camera_follows_and_pictures_depend_on_the_pose_alone():
    model = humanoid_model()
    renderer = BodyRenderer(model, width=84, height=84, plain=True)
    qpos = torch.tensor(model.qpos0).repeat(3, 1)
    qpos[1, 7 + 5] = -1.5  # lifts the right leg
    pictures = draw_bodies(renderer, qpos)
    assert pictures.shape == (3, 3, 84, 84)
    assert pictures.dtype == torch.uint8
    assert (pictures[0] == pictures[2]).all()
    assert (pictures[0] != pictures[1]).any()
    qpos[:, 0] += 2.0  # two tiles of the floor further
    moved = is_body(draw_bodies(renderer, qpos)[0].movedim(0, -1).numpy())
    renderer.close()
    stayed = is_body(pictures[0].movedim(0, -1).numpy())
    assert (moved != stayed).mean() < 0.01


def test_renderers_do_not_draw_over_each_other():
    model = humanoid_model()
    qpos = torch.tensor(model.qpos0)
    small = BodyRenderer(model, width=40, height=30, plain=True)
    alone = small.draw(qpos)
    large = BodyRenderer(model, width=80, height=60, plain=True)
    assert large.draw(qpos).shape == (60, 80, 3)
    large.close()
    assert (small.draw(qpos) == alone).all()
    small.close()


@pytest.mark.parametrize("name", ["humanoid", "ant"])
def test_a_film_shows_an_episode_at_the_speed_of_life(tmp_path, name):
    env = (
        HumanoidEnv(batch_size=[1], seed=0)
        if name == "humanoid"
        else RunningEnv(name, batch_size=[1], seed=0)
    )
    stacked = TransformedEnv(env, CatFrames(4, dim=-1, in_keys=["diversity_state"]))
    path = tmp_path / "film.webp"
    shown = film(stacked, env.rand_action, path, width=64, height=48, steps=9, every=3)
    assert shown == 9
    with Image.open(path) as picture:
        assert picture.size == (64, 48)
        assert picture.n_frames == 3
        picture.seek(2)
        picture.load()
        assert picture.info["duration"] == (50 if name == "humanoid" else 150)


def test_what_cannot_be_filmed_is_refused(tmp_path):
    for env in (HumanoidEnv(batch_size=[2]), NavigationEnv(batch_size=[1])):
        with pytest.raises(ValueError, match="give one copy"):
            film(env, env.rand_action, tmp_path / "film.webp")


def test_where_nothing_can_draw_it_says_what_to_install(monkeypatch):
    failed = subprocess.CompletedProcess([], returncode=1)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(RuntimeError, match="install EGL or OSMesa"):
        offscreen_platform.__wrapped__()
