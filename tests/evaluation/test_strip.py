import pytest
from PIL import Image

from evaluation.command_line import main
from evaluation.population import InputError
from evaluation.strip import draw_strip


def film(path, pictures=60, duration=50, size=(40, 30)):
    """A film whose picture at second t is as bright as 80 t, in red."""
    frames = [Image.new("RGB", size, (4 * index, 0, 0)) for index in range(pictures)]
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=duration, lossless=True)
    return path


def brightness(strip, moments, row, height):
    """Of the middle of each moment."""
    width = strip.width // moments
    return [
        strip.getpixel((column * width + width // 2, row * height + height // 2))[0]
        for column in range(moments)
    ]


def test_moments_are_evenly_spaced_in_time(tmp_path):
    strip = draw_strip([film(tmp_path / "a.webp")], moments=4, seconds=0.6, start=1.0, height=60)
    assert strip.size == (4 * 54, 60)
    # Seconds 1.0, 1.2, 1.4 and 1.6.
    assert brightness(strip, 4, 0, 60) == [80, 96, 112, 128]


def test_a_short_film_is_shown_from_where_it_can_be(tmp_path):
    films = [film(tmp_path / "long.webp"), film(tmp_path / "short.webp", pictures=17)]
    strip = draw_strip(films, moments=3, seconds=0.4, start=1.0, height=60)
    assert brightness(strip, 3, 0, 60) == [80, 96, 112]
    assert brightness(strip, 3, 1, 60) == [32, 48, 64]  # its last picture is at second 0.8
    shorter = draw_strip([film(tmp_path / "s.webp", pictures=3)], moments=3, seconds=2, height=60)
    assert brightness(shorter, 3, 0, 60) == [0, 8, 8]


def test_rows_are_named(tmp_path):
    path = film(tmp_path / "a.webp")
    named, plain = (draw_strip([path], names=names, height=120) for names in (["0001"], None))
    # The film is red and black, the letters white.
    assert named.crop((0, 0, 60, 25)).getchannel("G").getextrema()[1] > 200
    assert plain.getchannel("G").getextrema()[1] == 0


def test_films_of_two_kinds_are_refused(tmp_path):
    films = [film(tmp_path / "a.webp"), film(tmp_path / "b.webp", size=(24, 30))]
    with pytest.raises(InputError, match="differ in shape"):
        draw_strip(films)


def test_several_runs_are_one_picture(humanoids, tmp_path, drawing, capsys):
    other = tmp_path / "other"
    other.symlink_to(humanoids)
    picture = tmp_path / "pictures" / "strip.png"
    runs = [str(humanoids), str(other)]
    assert main(["strip", *runs, "--moments", "5", "--output", str(picture)]) == 0
    assert capsys.readouterr().out == f"{picture}\n"
    with Image.open(picture) as strip:
        assert strip.size == (5 * 162, 4 * 180)


def test_another_seed_shows_other_episodes(humanoids, tmp_path, drawing):
    strips = []
    for seed in (0, 1, 0):
        picture = tmp_path / "strip.png"
        command = ["strip", str(humanoids), "--seed", str(seed), "--output", str(picture)]
        assert main(command) == 0
        strips.append(picture.read_bytes())
    assert strips[0] == strips[2] != strips[1]


def test_who_cannot_be_filmed_is_named(navigation, humanoid, tmp_path, capsys):
    assert main(["strip", str(navigation), "--output", str(tmp_path / "strip.png")]) == 2
    assert f"{navigation}: its policies have nothing to film." in capsys.readouterr().err
    assert main(["strip", str(humanoid)]) == 2
    assert "only a run folder has a place for films" in capsys.readouterr().err
