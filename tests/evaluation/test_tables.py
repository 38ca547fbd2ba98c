import csv
import io
import json

import pytest

from evaluation.tables import FORMATS, Findings, Table

RECORDS = [
    {"run": "a|b_1", "policy": "0001", "route": (0, 2), "value": 0.5},
    {"run": "a|b_1", "policy": "0002", "route": None, "value": float("inf")},
]


@pytest.fixture
def findings():
    scores = {"a|b_1": {"routes": 1, "kind": "x"}, "c": {"routes": 4, "kind": "y"}}
    return Findings("routes", RECORDS, [Table.of(RECORDS, "Per policy")], scores, ["A note."])


def test_csv_can_be_read_back(findings):
    rows = list(csv.DictReader(io.StringIO(FORMATS["csv"](findings))))
    assert rows[0] == {"run": "a|b_1", "policy": "0001", "route": "0-2", "value": "0.5"}
    assert rows[1]["route"] == ""


def test_json_has_everything_and_nothing_beyond_the_standard(findings):
    def refuse(name):
        pytest.fail(f"{name} is not JSON")

    document = json.loads(FORMATS["json"](findings), parse_constant=refuse)
    assert document["summary"]["routes"] == {"mean": 2.5, "std": pytest.approx(2.1213, abs=1e-4)}
    assert document["summary"]["n"] == 2
    assert "kind" not in document["summary"]
    assert document["records"][1] == {**RECORDS[1], "value": "inf"}
    assert document["notes"] == ["A note."]


def test_markdown_escapes_what_would_end_a_cell(findings):
    lines = FORMATS["markdown"](findings).splitlines()
    assert lines[0] == "**Per policy**"
    assert lines[3] == r"| a\|b_1 | 0001 | 0-2 | 0.5 |"
    assert lines[-1] == "| mean (std) of 2 | 2.5 (2.121) |  |"


def test_latex_escapes_its_own_characters(findings):
    text = FORMATS["latex"](findings)
    assert r"a|b\_1 & 0001 & 0-2 & 0.5 \\" in text
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") == 2
    table = Table.of([{"x": r"50% of $\{~^#&"}])
    assert r"50\% of \$\textbackslash{}\{\textasciitilde{}\textasciicircum{}\#\&" in FORMATS[
        "latex"
    ](Findings("x", tables=[table]))


def test_text_is_aligned(findings):
    header, first, second = FORMATS["text"](findings).splitlines()[1:4]
    assert header.index("route") == first.index("0-2") == second.index("none")


def test_a_single_run_has_no_mean(findings):
    findings.scores.pop("c")
    assert "mean (std)" not in FORMATS["text"](findings)
    assert findings.summary()["routes"] == {"mean": 1.0, "std": 0.0}


def test_a_score_that_is_not_known_is_left_out_of_the_mean():
    findings = Findings("heatmap", scores={"a": {"x": None}, "b": {"x": 3.0}})
    assert findings.summary() == {"x": {"mean": 3.0, "std": 0.0}}
