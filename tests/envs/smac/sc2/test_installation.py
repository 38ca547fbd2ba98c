import pytest

from sipo_trl.envs.smac import SMACEnv
from sipo_trl.envs.smac.sc2 import check_installation


def test_a_missing_game_is_named_and_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("SC2PATH", str(tmp_path))
    message = (
        rf"no StarCraft II in {tmp_path}, .*SC2PATH.*SC2PATH/Maps/SMAC_Maps.*backend='embedded'"
    )
    with pytest.raises(FileNotFoundError, match=message):
        SMACEnv("2m_vs_1z", batch_size=[1], backend="sc2")


def test_the_game_is_expected_at_home(tmp_path, monkeypatch):
    monkeypatch.delenv("SC2PATH", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=rf"in {tmp_path}/StarCraftII,"):
        check_installation("2m_vs_1z")


def test_a_missing_map_is_named(game):
    message = rf"no map {game.folder}/Maps/SMAC_Maps/3m.SC2Map: put SMAC's maps into"
    with pytest.raises(FileNotFoundError, match=message):
        check_installation("3m")


def test_what_is_installed_is_found(game):
    assert check_installation("2m_vs_1z") == game.folder


def test_a_version_that_is_not_installed_is_named(game, make_env):
    message = r"(?s)did not start.*version='4\.6\.2' .* not installed in .*: choose one of \['4\.10"
    with pytest.raises(RuntimeError, match=message):
        make_env(version="4.6.2")


def test_a_version_can_be_chosen(make_env):
    env = make_env(version="4.10")
    assert env.battles.versions == ["4.10.0"]
    env.close()
