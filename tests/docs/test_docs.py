"""What the documentation says, runs; what it names, exists."""

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]
# A block of code: three backticks, the language, and what else stands beside it.
BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
TARGETS = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path, *languages: str) -> list[str]:
    """The page's blocks in one of the languages, without those that are marked ``no-run``."""
    return [
        code
        for language, mark, code in BLOCK.findall(page.read_text())
        if language in languages and mark.strip() != "no-run"
    ]


def leaves(menu: object) -> list[str]:
    """The pages that a menu of mkdocs leads to."""
    if isinstance(menu, str):
        return [menu]
    parts = menu.values() if isinstance(menu, dict) else menu
    return [page for part in parts for page in leaves(part)]


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=name)
def test_code_runs(page, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "page"}
    for code in blocks(page, "python"):
        exec(compile(code, name(page), "exec"), namespace)


@pytest.mark.parametrize(
    "page", [page for page in PAGES if blocks(page, "bash", "console")], ids=name
)
def test_commands_exist(page) -> None:
    commands = "\n".join(blocks(page, "bash", "console"))
    for program in re.findall(r"python ([\w/]+\.py)", commands):
        assert (ROOT / program).is_file(), program
    for module in re.findall(r"python -m (evaluation|benchmarks)\b", commands):
        assert (ROOT / module / "__main__.py").is_file(), module
    for target in re.findall(r"^(?:\$ )?make ([a-z]+)", commands, re.MULTILINE):
        assert target in TARGETS, target


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page) -> None:
    text = BLOCK.sub("", page.read_text())
    for target in re.findall(r"\]\(([^)#\s]+)", text):
        assert "://" in target or (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_what_a_sentence_names_exists(page) -> None:
    text = BLOCK.sub("", page.read_text())
    for program in re.findall(r"`(?:python )?((?:launch|docs/examples)/\w+\.py)", text):
        assert (ROOT / program).is_file(), program
    for target in re.findall(r"`make ([a-z]+)", text):
        assert target in TARGETS, target


def test_the_menu_has_every_page_and_no_other() -> None:
    menu = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]
    pages = [page.relative_to(DOCS).as_posix() for page in sorted(DOCS.rglob("*.md"))]
    assert sorted(leaves(menu)) == pages


def test_every_public_package_has_its_reference() -> None:
    reference = "".join(page.read_text() for page in (DOCS / "reference").glob("*.md"))
    for package in sorted((ROOT / "sipo_trl").glob("*/__init__.py")):
        assert f"::: sipo_trl.{package.parent.name}\n" in reference
