"""What the documentation says, runs."""

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
WITH_CODE = [page for page in PAGES if "```python\n" in page.read_text()]


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", WITH_CODE, ids=name)
def test_examples_run(page, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "page"}
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
        exec(compile(block, name(page), "exec"), namespace)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_commands_exist(page) -> None:
    text = page.read_text()
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for program in re.findall(r"python ((?:launch|docs)/[\w/]+\.py)", text):
        assert (ROOT / program).is_file(), program
    for target in re.findall(r"^make ([a-z]+)", text, re.MULTILINE):
        assert target in targets, target


def test_every_page_is_in_the_menu() -> None:
    menu = (ROOT / "mkdocs.yml").read_text()
    yaml.safe_load(menu)
    for page in sorted((ROOT / "docs").rglob("*.md")):
        assert str(page.relative_to(ROOT / "docs")) in menu, page
