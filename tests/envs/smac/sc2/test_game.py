"""What is played: the same battles as without the game, over its protocol."""

import pytest
import torch
from double import Battle, Installation

from sipo_trl.envs.smac import SMACEnv, load_map
from sipo_trl.envs.smac.sc2 import backend

TERRAN, ZERG, PROTOSS = 1, 2, 3


@pytest.mark.parametrize(
    ("map_name", "steps", "races"),
    [("2m_vs_1z", 80, (TERRAN, PROTOSS)), ("2c_vs_64zg", 60, (PROTOSS, ZERG))],
)
def test_both_backends_play_the_same(make_env, game, map_name, steps, races):
    """Every output of whole episodes, to the last bit, with actions drawn from the masks."""
    ours = make_env(2, map_name=map_name, seed=3)
    alone = [SMACEnv(map_name, batch_size=[1], seed=3 + copy) for copy in range(2)]
    state, states = ours.reset(), [env.reset() for env in alone]
    finished = 0
    for _ in range(steps):
        assert_same(state, torch.cat(states))
        action = torch.distributions.Categorical(state["agents", "action_mask"].float()).sample()
        result, state = ours.step_and_maybe_reset(state.set(("agents", "action"), action))
        pairs = [
            env.step_and_maybe_reset(one.set(("agents", "action"), action[copy : copy + 1]))
            for copy, (env, one) in enumerate(zip(alone, states, strict=True))
        ]
        states = [following for _, following in pairs]
        assert_same(result["next"], torch.cat([step["next"] for step, _ in pairs]))
        finished += int(result["next", "done"].sum())
    assert finished >= 2
    battle = list(game.battles.values())[-1]
    assert (battle.joined[0].race, battle.created[0].player_setup[1].race) == races
    ours.close()


def assert_same(ours, other):
    ours, other = (state.exclude(("agents", "action")) for state in (ours, other))
    keys = set(ours.keys(True, True))
    assert keys == set(other.keys(True, True))
    # The game does not show where units died: they stay where they were last seen.
    for key in keys - {"position", "enemy_position"}:
        torch.testing.assert_close(ours[key], other[key], rtol=0, atol=0, msg=str(key))
    for side in ("", "enemy_"):
        alive = ours[f"{side}alive"].unsqueeze(-1)
        places = [state[f"{side}position"] * alive for state in (ours, other)]
        torch.testing.assert_close(*places, rtol=0, atol=0)


def test_a_replay_that_cannot_be_kept_is_told(make_env, tmp_path, caplog):
    env = make_env(2, seed=5, replay_dir=tmp_path / "replays")
    env.reset()
    (tmp_path / "replays").rmdir()
    (tmp_path / "replays").touch()
    with caplog.at_level("WARNING"):
        env.close()
    assert len(caplog.messages) == 2
    assert "did not end as it should" in caplog.messages[0]
    assert "replays" in caplog.messages[0]


def test_a_replay_of_each_game_is_kept(make_env, game, tmp_path):
    replays = tmp_path / "new" / "replays"
    env = make_env(2, seed=5, replay_dir=replays)
    env.reset()
    assert replays.is_dir(), "games that end together would all make it, and all but one fail"
    env.close()
    names = sorted(path.name.rsplit("_", 1)[0] for path in replays.iterdir())
    assert names == ["2m_vs_1z_5", "2m_vs_1z_6"]
    assert {path.read_bytes() for path in replays.iterdir()} == {b"a replay"}
    assert game.battles[max(game.battles)].created[-1].local_map.map_path == (
        "SMAC_Maps/2m_vs_1z.SC2Map"
    )


@pytest.fixture
def other_game(tmp_path, monkeypatch):
    """A game that is not quite as it should be."""
    made = []

    def make(**options):
        made.append(Installation(tmp_path, make_battle=lambda: Battle(**options)))
        monkeypatch.setenv("SC2PATH", str(tmp_path))
        return made[-1]

    yield make
    for installation in made:
        installation.close()


def test_the_ground_of_old_games_is_understood(other_game, make_env):
    other_game(bits_per_pixel=8)
    env = make_env(map_name="2c_vs_64zg")
    climbing = load_map("2c_vs_64zg").walkable(climbs=True)
    assert torch.equal(env.battles.walkable(), climbing.expand(2, -1, -1))
    env.close()


def test_other_maps_under_smacs_names_are_refused(other_game, make_env, monkeypatch):
    other_game(plays="3m")
    monkeypatch.setattr(backend, "PATIENCE", 0)
    env = make_env()
    message = "2m_vs_1z has 3 allies and 3 enemies instead of 2 and 1: install SMAC's own maps"
    with pytest.raises(RuntimeError, match=message):
        env.reset()
