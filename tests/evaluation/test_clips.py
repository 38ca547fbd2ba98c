from PIL import Image

from evaluation.clips import film_policies
from evaluation.population import load_population


def test_each_policy_is_filmed_once(humanoids, tmp_path, drawing) -> None:
    clips = tmp_path / "clips"
    assert film_policies(load_population(humanoids), clips) is None
    films = sorted(clips.iterdir())
    assert [path.name for path in films] == ["0001.webp", "0002.webp"]
    for path in films:
        with Image.open(path) as picture:
            assert picture.n_frames > 5
            assert picture.size == (320, 240)
    films[0].write_bytes(b"mine")
    assert film_policies(load_population(humanoids), clips) is None
    assert films[0].read_bytes() == b"mine"


def test_where_nothing_can_draw_the_reason_is_given(humanoids, tmp_path, monkeypatch) -> None:
    def nothing(*args: object, **kwargs: object) -> None:
        raise RuntimeError("Nothing here can draw without a screen.")

    monkeypatch.setattr("evaluation.clips.film", nothing)
    why_not = film_policies(load_population(humanoids), tmp_path / "clips")
    assert why_not == "There are no films: Nothing here can draw without a screen."


def test_where_there_is_no_body_there_is_no_film(navigation, tmp_path) -> None:
    assert film_policies(load_population(navigation), tmp_path / "clips") is None
    assert not (tmp_path / "clips").exists()
