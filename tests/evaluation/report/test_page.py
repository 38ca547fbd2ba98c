import base64
import hashlib
import json
import re
import shutil

import pytest
import torch
from evaluation_archives import football_archive, index_columns

from evaluation.command_line import main
from evaluation.population import load_population
from evaluation.report import write_report
from evaluation.report.content import page_content
from sipo_trl.archive import Archive


def embedded(page):
    return json.loads(re.search(r'id="content">(.*?)</script>', page, re.DOTALL)[1])


def test_the_page_holds_what_the_run_left(navigation, tmp_path):
    page = write_report(load_population(navigation), tmp_path / "a" / "page.html").read_text()
    content = embedded(page)
    assert [policy["return"] for policy in content["policies"]] == [0, 1, 2]
    assert content["certificate"]["strategies"] == [0, 1, 2]
    assert content["score"] == {"name": "landmarks reached", "value": 3}
    assert [matrix["name"] for matrix in content["matrices"]] == [
        "energy",
        "rbf",
        "wd",
        "final_state",
    ]
    assert content["policies"][2]["curve"]["distance_2"] == [0.5] * 6
    assert content["threshold"] == -0.03
    assert content["features"]["names"] == ["x", "y"]
    assert len(content["plane"]["landmarks"]) == 4
    first = content["plane"]["paths"][0][0]["points"]
    assert first[0] == [[0, 0]]
    assert len(first) == 9


def test_nothing_is_fetched_and_no_foreign_script_runs(navigation, tmp_path):
    page = write_report(load_population(navigation), tmp_path / "page.html").read_text()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    for script in scripts:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert len(scripts) == policy.count("sha256-") == 5
    markup = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    assert not re.search(r"(src|href)=", markup)


def test_text_of_an_archive_is_escaped(tmp_path):
    attack = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
    Archive.create(tmp_path / "archive").append(
        torch.rand(8, 2), config={"env": {"name": attack}, attack: attack}, **index_columns(2, 4)
    )
    page = write_report(load_population(tmp_path / "archive"), tmp_path / "page.html").read_text()
    assert attack not in page
    assert "<img" not in page
    assert embedded(page)["env"] == attack


@pytest.mark.parametrize(
    ("name", "kind"), [("football", "football"), ("battle", "map"), ("humanoid", "projection")]
)
def test_every_domain_has_a_plane(name, kind, request):
    content = page_content(load_population(request.getfixturevalue(name)))
    assert content["plane"]["kind"] == kind
    assert all(len(policy) == 3 or kind == "map" for policy in content["plane"]["paths"])
    json.dumps(content, allow_nan=False)


def test_the_pitch_shows_won_matches_and_their_routes(tmp_path):
    routes = [(0, 1, 2), (0, 2)]
    football_archive(tmp_path, routes, wins=[True, False])
    plane = page_content(load_population(tmp_path))["plane"]
    assert plane["routes"] == [[0, 1, 2], None]
    assert plane["bounds"] == ((-1.0, 1.0), (-0.42, 0.42))  # a player stands on the half-way line
    assert [len(paths) for paths in plane["paths"]] == [3, 3]
    ball = [point[:1] for point in plane["paths"][0][0]["ball"]]
    assert ball == [[0.0], [0.5], [0.9]]


def test_a_battle_is_drawn_on_its_ground(battle):
    plane = page_content(load_population(battle))["plane"]
    assert (0, 10, 32, 12) in plane["ground"]
    assert plane["cliff"] == [(4, 12, 28, 14)]
    assert plane["bounds"] == ((-1, 33), (5, 21))
    (path,) = plane["paths"][0]  # one battle at a time
    assert path["enemies"] == [[[16.0, 16.0]]] * 10
    assert path["enemyAlive"] == [[1]] * 10


def test_the_humanoids_features_have_names(humanoid):
    features = page_content(load_population(humanoid))["features"]
    assert len(features["names"]) == 54
    assert features["names"][0] == "torso height"
    # The first feature of the last of four stacked states differs by 3 from policy to policy.
    medians = [policy[0][16] for policy in features["quantiles"]]
    assert medians == pytest.approx([0, 3, 6], abs=0.6)


def test_clips_are_embedded(humanoid, tmp_path):
    (tmp_path / "0002.mp4").write_bytes(b"a clip")
    content = page_content(load_population(humanoid), clips=tmp_path)
    uri = f"data:video/mp4;base64,{base64.b64encode(b'a clip').decode()}"
    assert [policy["clip"] for policy in content["policies"]] == [None, uri, None]


def test_a_single_policy_of_bare_states_has_a_page(tmp_path):
    Archive.create(tmp_path / "archive").append(torch.rand(8, 7))
    content = page_content(load_population(tmp_path / "archive"))
    assert content["certificate"] is None
    assert content["policies"][0]["curve"] is None


def test_the_command_writes_into_the_run_folder_and_beside_a_bare_archive(
    navigation, football, tmp_path, monkeypatch, capsys
):
    shutil.copytree(navigation, tmp_path / "run")
    monkeypatch.chdir(tmp_path)
    assert main(["report", "run", "--episodes", "2"]) == 0
    assert (tmp_path / "run/report/index.html").is_file()
    assert main(["report", str(football)]) == 0
    assert (tmp_path / "football.html").is_file()
    assert main(["report", "run", str(football), "--output", "page.html"]) == 2
    assert "there are several runs" in capsys.readouterr().err
