import subprocess
import sys

import pytest
from omegaconf import OmegaConf

from sipo_trl.training import RunError, RunFolder


def test_settings_and_archive_are_there_again(tmp_path) -> None:
    config = OmegaConf.create({"seed": 3, "twice": "${seed}"})
    folder = RunFolder.create(tmp_path / "run", config)
    found = RunFolder.open(folder.path)
    assert found.config == {"seed": 3, "twice": 3}
    assert len(found.archive) == 0
    found.rewrite(seed=4)
    assert RunFolder.open(folder.path).config.seed == 4


def test_a_run_is_never_overwritten(tmp_path) -> None:
    RunFolder.create(tmp_path, OmegaConf.create({"seed": 3}))
    with pytest.raises(RunError, match="already holds a run: continue it with resume="):
        RunFolder.create(tmp_path, OmegaConf.create({"seed": 4}))
    assert RunFolder.open(tmp_path).config.seed == 3


def test_what_is_no_run_is_named(tmp_path) -> None:
    with pytest.raises(RunError, match=r"holds no run, since there is no config.yaml"):
        RunFolder.open(tmp_path)


def test_an_unwritable_folder_is_named(tmp_path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(RunError, match=r"Could not make the run folder .*Not a directory"):
        RunFolder.create(tmp_path / "file" / "run", OmegaConf.create({}))


def test_only_one_process_works_on_a_run(tmp_path) -> None:
    folder = RunFolder.create(tmp_path, OmegaConf.create({}))
    code = f"""
from sipo_trl.training.run_folder import RunError, RunFolder
try:
    with RunFolder.open({str(tmp_path)!r}).locked():
        print("got in")
except RunError as error:
    print(error)
"""
    with folder.locked():
        result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "is in use by process" in result.stdout
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout == "got in\n"


@pytest.mark.parametrize(
    "text", [b"a: 1\na: 2\n", b"a: [", b"\xff"], ids=["twice", "open", "bytes"]
)
def test_settings_that_cannot_be_read_are_named(tmp_path, text) -> None:
    folder = RunFolder.create(tmp_path, OmegaConf.create({"a": 1}))
    (tmp_path / "config.yaml").write_bytes(text)
    with pytest.raises(RunError, match=r"config\.yaml cannot be read: "):
        _ = folder.config
