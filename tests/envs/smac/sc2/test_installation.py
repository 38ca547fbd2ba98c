import pytest

from sipo_trl.envs.smac import load_map
from sipo_trl.envs.smac.sc2 import GameLost, SC2Games, check_installation


def test_a_missing_game_is_named_and_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("SC2PATH", str(tmp_path))
    message = (
        rf"no StarCraft II in {tmp_path}, .*SC2PATH.*SC2PATH/Maps/SMAC_Maps.*backend='embedded'"
    )
    with pytest.raises(FileNotFoundError, match=message):
        SC2Games(load_map("2m_vs_1z"), num_games=1, seed=0)


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


def test_a_version_that_is_not_installed_is_named(game):
    message = r"version='4\.6\.2' .* not installed in .*: choose one of \['4\.10\.0', 'latest'\]"
    with pytest.raises(GameLost, match=message):
        SC2Games(load_map("2m_vs_1z"), num_games=1, seed=0, version="4.6.2")


@pytest.mark.parametrize("version", [None, "4.10", "4.10.0"])
def test_a_version_can_be_chosen(make_games, version):
    assert make_games(version=version).versions == ["4.10.0"]
