"""The examples in which the transform goes, with one line, into a pipeline that is not ours."""

import runpy
from pathlib import Path

import pytest

from sipo_trl.archive import Archive

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


@pytest.mark.parametrize("name", ["gymnasium_ppo", "vmas_ppo"])
def test_examples_run_and_leave_an_archive_and_a_picture(name, tmp_path, capsys) -> None:
    pytest.importorskip(name.removesuffix("_ppo"), reason="part of the extra 'dev'")
    program = runpy.run_path(str(EXAMPLES / f"{name}.py"))
    program["main"](["--frames", str(2 * program["BATCH"]), "--out", str(tmp_path / "out")])
    archive = Archive.open(tmp_path / "out" / "archive")
    assert len(archive) == 2
    assert archive[1].metrics["similarity"] >= 0
    assert list((tmp_path / "out").glob("*.png"))
    assert "with the line" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["gymnasium_ppo", "vmas_ppo"])
def test_one_line_makes_the_difference(name) -> None:
    source = (EXAMPLES / f"{name}.py").read_text()
    assert source.count("StateDistanceReward(") == 1
    assert "sipo_trl.objectives" not in source
