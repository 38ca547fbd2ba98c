import json
import re
import shutil

import pytest
import torch
from evaluation_archives import (
    EAST,
    NAVIGATION,
    NORTH,
    football_archive,
    index_columns,
    navigation_run,
)

from evaluation.command_line import main
from sipo_trl.archive import Archive


@pytest.fixture
def run(capsys):
    """Run a command; returns its exit code, what it printed and what it complained about."""

    def call(*arguments):
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return call


def found(run, *arguments):
    code, out, err = run(*arguments, "--json")
    assert code == 0, err
    return json.loads(out)


def content(folder):
    """Names, sizes and times of everything in a folder."""
    return {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in folder.rglob("*")}


def test_gridworld_prints_all_twelve_values(run):
    code, out, _ = run("gridworld")
    assert code == 0
    table = [line.split()[2:] for line in out.splitlines()[1:3]]
    assert table == [
        ["inf", "0.6931", "0.5", "2.646", "2.828", "5.657"],
        ["inf", "0.6931", "0.125", "1", "4.899", "11.31"],
    ]


def test_returns_by_hand(run, tmp_path):
    archive = Archive.create(tmp_path)
    # Two episodes, of two steps and of four, of which every second was kept.
    archive.append(
        torch.zeros(5, 2),
        episode=torch.tensor([0, 0, 1, 1, 1]),
        step=torch.tensor([0, 1, 0, 2, 3]),
        success=torch.tensor([False, False, True, True, True]),
        **{"return": torch.tensor([1.0, 1.0, 4.0, 4.0, 4.0])},
    )
    document = found(run, "returns", tmp_path)
    assert document["records"] == [
        {
            "run": str(tmp_path),
            "policy": "0001",
            "episodes": 2,
            "return": 2.5,
            "median": 2.5,
            "least": 1.0,
            "success": 0.5,
            "steps": 3.0,
        }
    ]
    assert document["runs"] == [{"run": str(tmp_path), "mean return": 2.5}]


def test_returns_need_to_be_archived(run, battle):
    archive = Archive.create(battle.parent / "silent")
    archive.append(torch.zeros(3, 2))
    code, _, err = run("returns", archive.path)
    assert code == 2
    assert "no column 'return'" in err


def test_entropy_counts_won_states_and_names_who_has_none(run, football):
    document = found(run, "entropy", football, "--k", "3")
    assert [record["rows"] for record in document["records"]] == [9, 6, 9, 0]
    assert document["runs"][0]["states"] == 24
    (note,) = document["notes"]
    assert "policy 0004 won none of its 3 episodes" in note
    published = found(run, "entropy", football, "--k", "3", "--include-self")
    assert published["runs"][0]["entropy"] < document["runs"][0]["entropy"]


def test_torque_by_hand(run, humanoid):
    # Squared distances 21, 21 and 84.
    assert found(run, "torque", humanoid)["runs"][0]["torque distance"] == pytest.approx(42)
    code, _, err = run("torque", humanoid, "--published")
    assert code == 2
    assert "no column 'foot_sensors'" in err


def test_routes_by_hand(run, football):
    document = found(run, "routes", football)
    assert [record["route"] for record in document["records"]] == [
        [0, 1, 2],
        [0, 2],
        [0, 1, 2],
        None,
    ]
    assert document["runs"][0]["distinct routes"] == 2
    _, out, err = run("routes", football)
    assert "0-1-2" in out
    assert "policy 0004 won none" in err


def test_a_route_with_missing_steps_is_refused(run, tmp_path):
    football_archive(tmp_path, [(0, 1, 2)], kept=slice(None, None, 2))
    code, _, err = run("routes", tmp_path)
    assert code == 2
    assert "some steps of its episodes were not stored" in err


def test_heatmaps_are_drawn_elsewhere(run, battle, tmp_path):
    before = content(battle)
    document = found(run, "heatmap", battle, "--plot", tmp_path / "pictures", "--bins", "8")
    assert 0 <= document["runs"][0]["mean overlap"] < 1
    assert [path.suffix for path in (tmp_path / "pictures").iterdir()] == [".png"]
    assert content(battle) == before


def test_several_runs_can_be_one_population(run, tmp_path):
    runs = [
        navigation_run(tmp_path / name, directions)
        for name, directions in (("a", (EAST,)), ("b", (EAST, NORTH)))
    ]
    document = found(run, "landmarks", "--together", *runs)
    assert document["runs"] == [{"run": str(tmp_path / "a,b"), "distinct landmarks": 2}]
    assert [record["policy"] for record in document["records"]] == ["a/0001", "b/0001", "b/0002"]


def test_landmarks_of_several_runs(run, navigation, tmp_path):
    fewer = navigation_run(tmp_path / "fewer", directions=[(1.0, 0.0)])
    document = found(run, "landmarks", navigation, fewer)
    assert [entry["distinct landmarks"] for entry in document["runs"]] == [3, 1]
    assert document["summary"]["distinct landmarks"]["mean"] == 2
    _, out, _ = run("landmarks", navigation, fewer, "--markdown")
    assert "| mean (std) of 2 | 2 (1.414) |" in out


def test_distances_under_every_measure(run, navigation):
    document = found(run, "distances", navigation)
    assert len(document["records"]) == 3 * 9
    assert {record["measure"] for record in document["records"]} == {"rbf", "wd", "final_state"}
    ends = {
        (record["policy"], record["other"]): record["distance"]
        for record in document["records"]
        if record["measure"] == "final_state"
    }
    assert ends["0001", "0003"] == pytest.approx(1.6, abs=0.05)


def test_certificate_on_held_out_and_on_stored_episodes(run, navigation):
    document = found(run, "certificate", navigation)
    assert document["runs"][0]["distinct strategies"] == 3
    assert "32 held-out episodes" in document["notes"][0]
    stored = found(run, "certificate", navigation, "--episodes", "0")
    assert "stored episodes" in stored["notes"][0]
    assert stored["records"] != document["records"]


def test_certificate_falls_back_on_stored_episodes(run, battle):
    code, out, err = run("certificate", battle)
    assert code == 0
    assert "Stored episodes are used" in err
    assert "distinct" in out


def test_new_episodes_can_be_asked_for(run, navigation):
    stored = found(run, "landmarks", navigation)
    again = found(run, "landmarks", navigation, "--episodes", "2")
    assert [record["policy"] for record in again["records"]] == ["0001", "0002", "0003"]
    assert again["records"] != stored["records"]


def test_output_goes_to_a_file(run, navigation, tmp_path):
    file = tmp_path / "new" / "table.tex"
    code, out, _ = run("landmarks", navigation, "--latex", "--output", file)
    assert (code, out) == (0, "")
    assert r"\toprule" in file.read_text()


def damaged(folder):
    Archive.create(folder).append(torch.zeros(9, 2))
    file = folder / "entries/0001/states/states.memmap"
    file.write_bytes(b"x" * file.stat().st_size)


def half_written(folder):
    Archive.create(folder).append(torch.zeros(9, 2))
    (folder / "entries/0001/entry.json").unlink()


def without_manifest(folder):
    Archive.create(folder).append(torch.zeros(9, 2))
    (folder / "manifest.json").unlink()


def foreign(folder):
    folder.mkdir()
    (folder / "manifest.json").write_text('{"format": "another"}')


def with_nan(folder):
    states = torch.zeros(30, 2)
    states[4, 1] = float("nan")
    with pytest.MonkeyPatch.context() as patch:  # such as an archive made elsewhere
        patch.setattr("sipo_trl.archive._columns.check_finite", lambda states: None)
        archive = Archive.create(folder)
        archive.append(torch.zeros(30, 2))  # the first one's statistics have to be numbers
        archive.append(states)


def unplayable(folder):
    Archive.create(folder).append(
        torch.zeros(9, 2), config={"env": {**NAVIGATION, "name": "chess"}}, **index_columns(3, 3)
    )


@pytest.mark.parametrize(
    ("make", "arguments", "complaint"),
    [
        (lambda folder: None, ["entropy"], "there is no such folder"),
        (Archive.create, ["entropy"], "the archive is empty"),
        (damaged, ["entropy"], "damaged: its SHA-256"),
        (half_written, ["entropy"], "cannot be read"),
        (without_manifest, ["entropy"], "not an archive"),
        (foreign, ["entropy"], "not the manifest of a sipo_trl archive"),
        (with_nan, ["entropy"], "state 4 is not finite"),
        (unplayable, ["entropy"], "k is 12, but there are 9 states"),
        (unplayable, ["heatmap", "--episodes", "2"], "no policy|'chess' is not installed here"),
        (unplayable, ["torque"], "no column 'torque'"),
        (unplayable, ["landmarks"], "no column 'landmark'"),
        (unplayable, ["routes"], "no column 'ball'"),
        (foreign, ["report"], "not the manifest of a sipo_trl archive"),
    ],
)
def test_bad_input_gets_one_sentence_and_exit_code_2(run, tmp_path, make, arguments, complaint):
    folder = tmp_path / "bad"
    make(folder)
    before = content(tmp_path)
    code, out, err = run(arguments[0], folder, *arguments[1:])
    assert (code, out) == (2, "")
    assert re.search(complaint, err)
    assert err.count("\n") == 1
    assert "Traceback" not in err
    assert content(tmp_path) == before


def test_mixed_state_sizes_are_refused(run, tmp_path, monkeypatch):
    monkeypatch.setattr(Archive, "_check_form", lambda *_: None)
    archive = Archive.create(tmp_path / "mixed")
    archive.append(torch.zeros(9, 2))
    archive.append(torch.zeros(9, 3))
    code, _, err = run("distances", tmp_path / "mixed")
    assert code == 2
    assert "its states have the shape [3], those of 0001 [2]" in err


def test_nothing_is_written_into_an_archive(run, navigation, tmp_path):
    shutil.copytree(navigation, tmp_path / "run")
    archive = tmp_path / "run" / "archive"
    before = content(archive)
    for arguments in (
        ["landmarks", archive, "--output", archive / "table.txt"],
        ["landmarks", archive, "--plot", archive / "entries"],
        ["report", archive, "--output", archive / "entries" / "page.html"],
    ):
        code, _, err = run(*arguments)
        assert code == 2
        assert "within an archive" in err
    for command in ("landmarks", "entropy", "heatmap", "certificate"):
        run(command, archive)
    assert content(archive) == before


def test_help_names_every_command(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    for name in ("entropy", "torque", "routes", "heatmap", "gridworld", "landmarks"):
        assert name in text
    for name in ("distances", "certificate", "report", "returns", "strip"):
        assert name in text


def test_an_unknown_command_is_refused(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["nonsense"])
    assert stop.value.code == 2
