"""The script for Isaac's interpreter as a text; what it does is seen in test_isaac_gym.py."""

import ast
import sys
from pathlib import Path

from sipo_trl.envs.humanoid import isaac_gym_server

TREE = ast.parse(Path(isaac_gym_server.__file__).read_text(), feature_version=(3, 8))


def test_it_imports_only_what_isaac_brings():
    names = {
        name.split(".")[0]
        for node in ast.walk(TREE)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert names - sys.stdlib_module_names == {"numpy", "torch", "isaacgym", "isaacgymenvs"}


def test_torch_waits_until_isaac_is_there():
    outermost = [node for node in TREE.body if isinstance(node, ast.Import)]
    assert "torch" not in {alias.name for node in outermost for alias in node.names}
