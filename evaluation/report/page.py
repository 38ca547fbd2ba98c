"""Putting content, style and scripts together into one file."""

import base64
import hashlib
import html
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from evaluation.population import Population
from evaluation.report.content import page_content

# In the order in which they need each other.
_SCRIPTS = ("echarts.min.js", "theme.js", "player.js", "charts.js", "gallery.js")


def write_report(
    population: Population,
    output: Path,
    *,
    clips: Path | None = None,
    least: float = 0.1,
    seed: int = 0,
) -> Path:
    """Write the gallery of a population.

    Args:
        population: the policies, with the episodes that are to be shown.
        output: the page; its folder is made if need be.
        clips: folder of rendered clips, named after the archive's entries (``0001.mp4``); by
            default ``clips/`` in the run folder, if there is one.
        least: see :func:`~evaluation.certificate.certify`.
        seed: decides all draws.

    Returns:
        The page's path.
    """
    page = render(page_content(population, clips=clips, least=least, seed=seed))
    output.parent.mkdir(parents=True, exist_ok=True)
    # Beside, then renamed: whoever looks at an older page sees all of it or all of the new one.
    aside = output.with_name(f".{output.name}")
    aside.write_text(page, encoding="utf-8")
    aside.replace(output)
    return output


def render(content: dict[str, Any]) -> str:
    """The page about some content, as text.

    All text of the content is either escaped here or set as text by the scripts. The page's
    policy forbids every script but its own, and every request.
    """
    scripts = [_asset(name) for name in _SCRIPTS]
    hashes = " ".join(f"'sha256-{_sha256(script)}'" for script in scripts)
    parts = {
        "title": html.escape(f"{content['env'] or 'policies'} · {content['run']}"),
        "hashes": hashes,
        "style": _asset("gallery.css"),
        "content": _embedded(content),
        "scripts": "\n".join(f"<script>{script}</script>" for script in scripts),
    }
    before, *rest = _asset("gallery.html").split("{{")
    pieces = [before]
    for part in rest:
        name, _, text = part.partition("}}")
        pieces += [parts[name], text]
    return "".join(pieces)


def _embedded(content: dict[str, Any]) -> str:
    """JSON that cannot end the element that it is in."""
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _asset(name: str) -> str:
    return files("evaluation.report").joinpath("assets", name).read_text(encoding="utf-8")


def _sha256(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
