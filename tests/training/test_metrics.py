import math

import pytest
import torch
from tensordict import TensorDict

from sipo_trl.training.metrics import MetricsTable, to_row
from sipo_trl.training.run_folder import RunError


def test_numbers_survive_the_file_exactly(tmp_path) -> None:
    row = to_row(TensorDict({"a": torch.tensor(1 / 3), "b": torch.tensor([1e-30, math.nan])}))
    table = MetricsTable(tmp_path / "metrics.csv")
    table.append(row)
    (found,) = table.read()
    assert found["a"] == row["a"]
    assert found["b_1"] == row["b_1"]
    assert math.isnan(found["b_2"])


def test_a_row_cut_in_half_by_a_kill_is_ignored(tmp_path) -> None:
    table = MetricsTable(tmp_path / "metrics.csv")
    for update in range(3):
        table.append({"update": update, "return": 0.5})
    text = table.path.read_text()
    table.path.write_text(text[: text.rindex(",")])
    assert [row["update"] for row in table.read()] == [0, 1]


def test_cutting_keeps_the_beginning(tmp_path) -> None:
    table = MetricsTable(tmp_path / "metrics.csv")
    table.cut(3)
    for update in range(3):
        table.append({"update": update})
    table.cut(1)
    table.append({"update": 7})
    assert [row["update"] for row in table.read()] == [0, 7]


@pytest.mark.parametrize(
    ("path", "reason"),
    [("/dev/full", "No space left on device"), ("missing/metrics.csv", "No such file")],
    ids=["full disk", "folder removed"],
)
def test_what_cannot_be_written_is_one_sentence(path, reason, tmp_path) -> None:
    with pytest.raises(RunError, match=f"Could not write to .*: {reason}"):
        MetricsTable(tmp_path / path).append({"update": 0})
