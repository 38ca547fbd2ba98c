"""Imports point downwards only: the order of packages in which the code is to be read."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# Each package, and what it may import of the project beside itself.
ALLOWED = {
    "sipo_trl.registry": set(),
    "sipo_trl.processor": set(),
    "sipo_trl.archive": {"sipo_trl.registry"},
    "sipo_trl.measures": {"sipo_trl.archive", "sipo_trl.processor"},
    "sipo_trl.transforms": {"sipo_trl.archive", "sipo_trl.measures"},
    "sipo_trl.objectives": set(),
    "sipo_trl.models": set(),
    "sipo_trl.envs": set(),
}
BELOW = set(ALLOWED)
ALLOWED["sipo_trl.training"] = BELOW
ALLOWED["sipo_trl.algorithms"] = BELOW | {"sipo_trl.training"}
ALLOWED["evaluation"] = {"sipo_trl.archive", "sipo_trl.envs", "sipo_trl.measures"}


def package_of(module: str) -> str:
    """``sipo_trl.archive.entry`` belongs to ``sipo_trl.archive``."""
    return ".".join(module.split(".")[: 2 if module.startswith("sipo_trl") else 1])


def imports(path: Path) -> set[str]:
    """The project's packages that a file imports, wherever in the file."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names.add(node.module or "")
    return {package_of(name) for name in names if name.split(".")[0] in ("sipo_trl", "evaluation")}


def sources() -> list[Path]:
    found = [*ROOT.glob("sipo_trl/**/*.py"), *ROOT.glob("evaluation/**/*.py")]
    return [path.relative_to(ROOT) for path in sorted(found) if path.parent != ROOT / "sipo_trl"]


@pytest.mark.parametrize("path", sources(), ids=str)
def test_imports_point_downwards(path) -> None:
    package = package_of(".".join(path.with_suffix("").parts))
    assert package in ALLOWED, f"{package} has no place in the order yet"
    assert imports(ROOT / path) <= ALLOWED[package] | {package}


def test_every_package_is_there() -> None:
    assert {package_of(".".join(path.with_suffix("").parts)) for path in sources()} == set(
        ALLOWED
    ) - {"sipo_trl.registry", "sipo_trl.processor"}
