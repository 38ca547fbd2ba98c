"""Moments of each policy's film side by side: a population in one picture that can be printed."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from evaluation.population import InputError

# What happens is in the middle: the camera goes with it.
_SHARE_OF_WIDTH = 0.9


def draw_strip(
    films: Sequence[Path],
    *,
    names: Sequence[str] | None = None,
    moments: int = 10,
    seconds: float = 0.6,
    start: float = 2.0,
    height: int = 180,
) -> Image.Image:
    """A row of moments, evenly spaced in time, for each film.

    Args:
        films: animated pictures, such as :func:`~evaluation.clips.film_policies` makes.
        names: what is written on each row; nothing if not given.
        moments: how many there are in a row.
        seconds: how much time passes from the first to the last of them.
        start: when the first one is; earlier in films that would end too soon.
        height: of a row, in pixels.
    """
    rows = []
    for film in films:
        times, pictures = _read(film)
        first = max(0.0, min(start, times[-1] - seconds))
        wanted = np.linspace(first, first + seconds, moments)
        nearest = np.abs(times - wanted[:, None]).argmin(1)
        rows.append(np.concatenate([_middle(pictures[index], height) for index in nearest], 1))
    if len({row.shape for row in rows}) > 1:
        raise InputError("The films differ in shape: one strip shows films of one kind.")
    strip = Image.fromarray(np.concatenate(rows))
    if names is not None:
        draw, font = ImageDraw.Draw(strip), ImageFont.load_default(size=height / 12)
        for index, name in enumerate(names):
            draw.text((8, index * height + 5), name, fill="white", font=font)
    return strip


def _read(film: Path) -> tuple[np.ndarray, list[Image.Image]]:
    """When each picture is shown, in seconds [N], and the pictures."""
    times, pictures, now = [], [], 0.0
    with Image.open(film) as frames:
        for index in range(getattr(frames, "n_frames", 1)):
            frames.seek(index)
            pictures.append(frames.convert("RGB"))
            times.append(now)
            now += frames.info.get("duration", 0) / 1000
    return np.array(times), pictures


def _middle(picture: Image.Image, height: int) -> np.ndarray:
    """The middle of a picture, of that height."""
    width = round(_SHARE_OF_WIDTH * picture.height)
    left = max(0, (picture.width - width) // 2)
    cut = picture.crop((left, 0, min(left + width, picture.width), picture.height))
    return np.asarray(cut.resize((round(cut.width * height / cut.height), height)))
