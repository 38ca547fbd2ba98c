"""The benchmarks at tiny sizes: their tables and their checks, never their times."""

import doctest
import importlib
import json
import math
import os
import sys
from functools import partial
from types import SimpleNamespace

import pytest
import torch

from benchmarks import components, evaluation, humanoid, memory, peers, smac, table, timing, updates
from benchmarks.precision import NATIVE_PRECISIONS
from benchmarks.table import HEADER, Row, format_table, main
from sipo_trl.models import MaskedGRU
from sipo_trl.objectives import MultiHeadGAE

rbf_tiny = {"rounds": 2, "states": 40, "references": 60}
PIECES = {
    "rbf product": lambda: [components.rbf_against_product(144, **rbf_tiny)],
    "rbf product and exp": lambda: [components.rbf_against_product(2, **rbf_tiny)],
    "rbf cdist": lambda: [components.rbf_against_cdist(144, **rbf_tiny)],
    "critics": lambda: [components.critics_speed(8, rounds=2, critics=3, features=5)],
    "battles": lambda: [smac.stepping("3m", rounds=2, least=1, envs=8, steps=2)],
    "gae": lambda: [components.gae_speed(rounds=2, envs=3, steps=90, heads=2)],
    "gru": lambda: [components.gru_speed(4, rounds=2, sequences=2, agents=3, size=5)],
}


def row(**changes):
    figures = {"ours": 1.0, "theirs": 2.0, "ratio": 0.5, "spread": (0.4, 0.6)}
    return Row(**{"what": "a thing", "peer": "another", **figures, **changes})


def assert_well_formed(rows):
    for line in rows:
        assert all(map(math.isfinite, (line.ours, line.theirs, line.ratio)))
        assert line.theirs > 0
        assert line.spread[0] <= line.ratio <= line.spread[1]
    lines = format_table(rows).splitlines()
    assert len(lines) == len(rows) + 2
    assert len({len(line) for line in lines}) == 1
    assert all(line.count(" | ") == len(HEADER) - 1 for line in lines)


@pytest.mark.parametrize("piece", PIECES)
def test_pieces_agree_with_their_peers_and_give_rows(piece):
    rows = PIECES[piece]()
    assert_well_formed(rows)
    assert all(line.most_ratio is not None for line in rows)


@pytest.mark.parametrize(
    "options", [{"precision": "float32"}, {"precision": "bfloat16", "autocast": True}]
)
def test_critics_are_compared_in_the_same_precision_too(options):
    sizes = {"rounds": 2, "critics": 3, "features": 5}
    line = components.critics_speed(8, **sizes, **options, most_ratio=None)
    assert_well_formed([line])
    assert line.most_ratio is None
    assert ("products in float32" in line.what) == ("in float32" in line.peer)


class ForgetfulGRU(MaskedGRU):
    def _run(self, features, hidden, is_init, time):
        return super()._run(features, hidden, torch.ones_like(is_init), time)


class HalfClippedCritics(peers.ModuleCritics):
    def __init__(self, measure):
        super().__init__(measure)
        self.clip /= 2


def wrong_cdist(states, references, variance):
    return 1.01 * peers.cdist_reward(states, references, variance)


@pytest.mark.parametrize(
    ("piece", "name", "wrong"),
    [
        ("rbf product", "cdist_reward", wrong_cdist),
        ("rbf product and exp", "cdist_reward", wrong_cdist),
        ("rbf cdist", "cdist_reward", wrong_cdist),
        ("critics", "ModuleCritics", HalfClippedCritics),
        ("gae", "MultiHeadGAE", partial(MultiHeadGAE, bootstrap_intrinsic=False)),
        ("gru", "MaskedGRU", ForgetfulGRU),
    ],
)
def test_a_wrong_answer_is_never_timed(monkeypatch, piece, name, wrong):
    monkeypatch.setattr(components, name, wrong)
    monkeypatch.setattr(components, "compare", lambda *_, **__: pytest.fail("it was timed"))
    with pytest.raises(AssertionError, match="ours and the peer's answers differ"):
        PIECES[piece]()


def here(function, *args):
    """Stands for a fresh process, which takes seconds to start; in an old one nothing may grow."""
    return max(1, function(*args))


def test_humanoid_rows():
    pytest.importorskip("envpool", reason="envpool has wheels for Linux only")
    rows = list(humanoid.stepping(2, rounds=2))
    assert_well_formed(rows)
    assert [line.most_ratio is not None for line in rows] == [True, False, False]


def test_humanoid_training_rows(monkeypatch):
    training = pytest.importorskip("benchmarks.humanoid_training", reason="needs the extra 'dev'")
    for name, size in {"ENVS": 2, "STEPS": 4, "EPOCHS": 1, "MINIBATCHES": 1, "STATES": 20}.items():
        monkeypatch.setattr(training, name, size)
    rows = [
        *training.against_baselines(rounds=1, compiled=False),
        training.against_collector(rounds=1),
        *training.parts(rounds=1, compiled=False),
    ]
    assert_well_formed(rows)
    assert [line.most_ratio for line in rows] == [0.5] * len(NATIVE_PRECISIONS) + [None] * 3


def test_training_rows(monkeypatch):
    training = pytest.importorskip("benchmarks.training", reason="needs the extra 'dev'")
    config = training.make_config
    monkeypatch.setattr(
        training, "make_config", lambda *args, **options: uncompiled(config(*args, **options))
    )
    rows = list(training.against_one_environment(rounds=1, envs=2, frames=8))
    assert_well_formed(rows)
    assert [line.most_ratio for line in rows] == [1 / 20] * 3 * len(NATIVE_PRECISIONS)


def uncompiled(config):
    config.ppo.compile = False
    return config


def test_memory_rows(monkeypatch):
    monkeypatch.setattr(components, "in_fresh_process", here)
    rows = list(components.rbf_memory(states=50, features=3, sizes=(100, 400)))
    assert_well_formed(rows)
    assert [(line.unit, line.most) for line in rows] == [("B", 64e6)] * 2


def test_archive_rows(monkeypatch):
    monkeypatch.setattr(components, "in_fresh_process", here)
    rows = list(components.archive_opening(rounds=2, states=1000, features=3))
    assert_well_formed(rows)
    assert [line.unit for line in rows] == ["s", "s", "s", "B"]


@pytest.mark.parametrize("features", [2, 12])
def test_entropy_rows_have_every_peer(features):
    rows = list(evaluation.entropy_speed(features, rounds=1, states=200))
    assert_well_formed(rows)
    assert [line.peer for line in rows] == list(evaluation.peers(features))
    assert all(line.most_ratio == 1.0 for line in rows)


def test_a_wrong_entropy_is_never_timed(monkeypatch):
    monkeypatch.setattr(evaluation, "knn_entropy", lambda states: 0.0)
    monkeypatch.setattr(evaluation, "in_turns", lambda *_, **__: pytest.fail("it was timed"))
    with pytest.raises(AssertionError, match="ours and the peer's answers differ"):
        list(evaluation.entropy_speed(2, rounds=1, states=200))


def test_entropy_memory_row(monkeypatch):
    monkeypatch.setattr(evaluation, "in_fresh_process", here)
    row = evaluation.entropy_memory(states=400)
    assert_well_formed([row])
    assert (row.unit, row.theirs) == ("B", 4 * 400**2)


def test_growth_rows_compare_archives_with_an_empty_one():
    rows = list(updates.growth(rounds=1, entries=(2,), states=30, envs=4, steps=5))
    assert_well_formed(rows)
    assert [line.most_ratio for line in rows] == [0.1, None]
    assert len({line.theirs for line in rows}) == 1


def test_growth_is_per_entry_and_relative_to_the_empty_archive(monkeypatch):
    seconds = {"update 0": [10.0], "update 1": [11.0], "update 4": [14.0], "kernel": [3.2]}
    monkeypatch.setattr(updates, "in_turns", lambda calls, rounds: {k: seconds[k] for k in calls})
    rows = updates.growth(rounds=1, entries=(1, 4), states=30, envs=4, steps=5)
    assert [line.ratio for line in rows] == pytest.approx([0.1, 0.1, 0.08])


def test_rounds_go_to_and_fro(monkeypatch):
    seen = []
    monkeypatch.setattr(timing, "_seconds", lambda call, *_: call() or 1.0)
    calls = {"a": lambda: seen.append("a"), "b": lambda: seen.append("b")}
    assert timing.in_turns(calls, rounds=3) == {"a": [1.0] * 3, "b": [1.0] * 3}
    warm_up = "ab" * 2
    assert "".join(seen) == warm_up + "ab" + "ba" + "ab"


def test_short_calls_are_repeated(monkeypatch):
    asked = []

    def fake(call, repeats, clock):
        asked.append(repeats)
        return 1e-3

    monkeypatch.setattr(timing, "_seconds", fake)
    timing.in_turns({"short": lambda: None}, rounds=1)
    assert asked == [1, 20]


def test_the_ratio_is_the_median_of_the_rounds_ratios():
    # A slow round slows both: the ratio of the medians would be 1.
    line = timing.make_row("a thing", [1.0, 8.0, 2.0], "another", [2.0, 16.0, 1.0])
    assert line.ours == line.theirs == 2.0
    assert line.ratio == 0.5


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({}, "-"),
        ({"most_ratio": 0.5}, "met"),
        ({"most_ratio": 0.49}, "MISSED"),
        ({"most": 1.0}, "met"),
        ({"most": 0.9}, "MISSED"),
        ({"most_ratio": 0.5, "most": 0.9}, "MISSED"),
    ],
)
def test_verdicts(changes, verdict):
    assert row(**changes).verdict == verdict


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (12.34, "s", "12.3 s"),
        (0.0123, "s", "12.3 ms"),
        (1e-8, "s", "0.01 us"),
        (-0.5, "s", "-500 ms"),
        (1.6e9, "B", "1.60 GB"),
        (0, "B", "0.00 kB"),
    ],
)
def test_quantities_are_legible(value, unit, text):
    assert row(ours=value, unit=unit).cells()[1] == text


@pytest.fixture
def fake_rows(monkeypatch):
    """Let components consist of given rows; returns where to put them, and how they were asked."""
    fake = SimpleNamespace(lines=[], quick=None)

    def rows(*, quick):
        fake.quick = quick
        return iter(fake.lines)

    monkeypatch.setitem(sys.modules, "benchmarks.components", SimpleNamespace(rows=rows))
    return fake


def test_a_missed_target_fails_the_program_and_is_marked(fake_rows, capsys):
    fake_rows.lines = [row(most_ratio=1.0), row(what="a slow thing", most_ratio=0.1)]
    assert main(["components"]) == 1
    marked = [line for line in capsys.readouterr().out.splitlines() if "MISSED" in line]
    assert len(marked) == 1
    assert "a slow thing" in marked[0]
    fake_rows.lines = fake_rows.lines[:1]
    assert main(["components"]) == 0
    assert main([], only="components") == 0


def test_figures_as_json(fake_rows, tmp_path):
    fake_rows.lines = [row(most_ratio=0.1)]
    file = tmp_path / "figures.json"
    assert main(["components", "--quick", "--json", str(file)]) == 1
    assert fake_rows.quick
    (figures,) = json.loads(file.read_text())["rows"]
    assert figures["ratio"] == 0.5
    assert figures["verdict"] == "MISSED"


def test_what_is_not_installed_is_left_out_and_said(fake_rows, monkeypatch, capsys):
    def rows(*, quick):
        raise ImportError("A library is not installed: install it.")

    monkeypatch.setitem(sys.modules, "benchmarks.football", SimpleNamespace(rows=rows))
    fake_rows.lines = [row(most_ratio=1.0)]
    assert main(["football", "components"]) == 1
    output = capsys.readouterr()
    assert "football was left out. A library is not installed: install it." in output.err
    assert "| met" in output.out


def test_an_unknown_benchmark_is_named(capsys):
    with pytest.raises(SystemExit) as error:
        main(["nonsense"])
    assert error.value.code == 2
    assert "'nonsense': choose from components" in capsys.readouterr().err


def test_listed_benchmarks_exist():
    assert all(callable(importlib.import_module(f"benchmarks.{name}").rows) for name in table.NAMES)


def peak_of_a_block() -> int:
    def call():
        block = torch.ones(12_500_000)
        for _ in range(20):  # long enough for the watching thread to have its turn
            block.sum()

    return memory.peak_anonymous(call)


def test_memory_that_is_freed_again_counts():
    # In a process of its own: earlier tests leave memory behind that could be used again.
    assert 45e6 < memory.in_fresh_process(peak_of_a_block) < 200e6


def test_a_fresh_process_is_another_one():
    assert memory.in_fresh_process(os.getpid) != os.getpid()


@pytest.mark.parametrize("module", [memory, peers, table, timing])
def test_examples_in_docstrings(module):
    failed, attempted = memory.in_fresh_process(run_examples, module.__name__)
    assert attempted > 0
    assert failed == 0


def run_examples(module: str) -> tuple[int, int]:
    return tuple(doctest.testmod(importlib.import_module(module)))


def test_football_is_compared_with_the_engine_and_its_wrappers():
    pytest.importorskip("gfootball", reason="gfootball is not installed: run make football")
    from benchmarks import football

    rows = [
        football.against_engine(2, frames=2, frame_skip=2, rounds=1),
        football.against_wrappers(2, frames=2, rounds=1),
    ]
    assert_well_formed(rows)
    assert [line.most_ratio for line in rows] == [pytest.approx(1.25), pytest.approx(2 / 3)]
