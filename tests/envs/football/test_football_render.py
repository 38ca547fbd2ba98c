import pytest
from PIL import Image
from tensordict.nn import TensorDictModule

from sipo_trl.envs import NavigationEnv
from sipo_trl.envs.football import FootballEnv
from sipo_trl.envs.football.pictures import HEIGHT, WIDTH
from sipo_trl.envs.football.render import film_match


def test_a_match_is_filmed(tmp_path) -> None:
    env = FootballEnv(batch_size=[1], seed=0, workers=1)
    run = TensorDictModule(
        lambda observation: (observation[..., 0] * 0 + 5).long(),
        in_keys=[("agents", "observation")],
        out_keys=[("agents", "action")],
    )
    path = tmp_path / "match.webp"
    try:
        assert film_match(env, run, path, steps=4, every=2) == 4
    except RuntimeError as error:
        pytest.skip(f"the engine cannot draw here: {error}")
    finally:
        env.close()
    with Image.open(path) as film:
        assert film.size == (WIDTH, HEIGHT)
        assert film.n_frames == 2
        red, green, blue = film.convert("RGB").resize((1, 1)).getpixel((0, 0))
    assert green > max(red, blue)  # grass


def test_other_environments_are_refused(tmp_path) -> None:
    env = NavigationEnv(batch_size=[1])
    with pytest.raises(ValueError, match="give one copy"):
        film_match(env, env.rand_action, tmp_path / "film.webp")
