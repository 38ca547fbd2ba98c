"""Plausibility: who wins how, and that nothing is lost or gained on the way."""

from dataclasses import replace

import pytest
import torch
from battle_players import alternate, move, shoot

from sipo_trl.envs.smac import UNITS, Engine, Features, load_map

NORTH, SOUTH, EAST, WEST, FIRST_ATTACK = 2, 3, 4, 5, 6


def make(name, *, copies=8, seed=0, **options):
    engine = Engine(load_map(name), **options)
    noise = torch.rand(copies, engine.noise_size, generator=torch.Generator().manual_seed(seed))
    return engine, Features(engine.spec), engine.start(noise)


def play(engine, features, battle, player, steps=None):
    """Whole battles; returns which were won [B] and when they ended [B]."""
    won = torch.zeros(len(battle.health), dtype=torch.bool)
    ended = torch.full((len(battle.health),), torch.inf)
    for step in range(steps or engine.spec.episode_limit):
        battle = engine.step(battle, player(features(battle.snapshot())))
        view = features(battle.snapshot())
        now = view.ended.squeeze(1) & ended.isinf()
        ended = ended.masked_fill(now, step + 1)
        won |= now & view.won.squeeze(1)
        if ended.isfinite().all():
            break
    return won, ended


def place(battle, unit, x, y):
    """The battles with one unit elsewhere."""
    position = battle.position.clone()
    position[:, :, unit] = torch.tensor([x, y]).unsqueeze(1)
    return replace(battle, position=position)


def stop(view):
    return torch.where(view.alive, 1, 0)


def test_marines_that_stand_and_shoot_lose_to_the_zealot():
    won, ended = play(*make("2m_vs_1z", copies=32), shoot)
    assert not won.any()
    assert ended.isfinite().all()


def test_marines_that_alternate_win():
    won, _ = play(*make("2m_vs_1z", copies=32), lambda view: alternate(view, 3.0, 0.02))
    assert won.float().mean() > 0.9


def test_colossi_in_the_open_die_sooner_than_those_who_use_the_cliff():
    engine, features, battle = make("2c_vs_64zg", copies=4)

    def climb(view):
        """Shoot while nobody is near; flee across the cliff from those who are."""
        ours, theirs = view.snapshot.allies.position, view.snapshot.enemies.position
        gap = (theirs.unsqueeze(1) - ours.unsqueeze(2)).norm(dim=-1)
        gap = gap.masked_fill(~view.enemies_alive.unsqueeze(1), torch.inf)
        nearest = theirs.gather(1, gap.argmin(-1, keepdim=True).expand(-1, -1, 2))
        same_side = (nearest[..., 1] > 13) == (ours[..., 1] > 13)
        goal = torch.where(ours[..., 1:] > 13, 10.0, 16.0)
        goal = torch.cat([ours[..., :1], goal], -1)
        flees = (gap.amin(-1) < 4) & same_side
        return torch.where(flees & view.alive, move(view, goal), shoot(view))

    _, open_end = play(engine, features, battle, shoot)
    _, cliff_end = play(engine, features, battle, climb)
    assert (cliff_end > open_end).all()


@pytest.mark.parametrize("name", ["3m", "2s3z"])
def test_equal_sides_that_both_shoot_fight_to_the_end(name):
    _, ended = play(*make(name, copies=32), lambda view: shoot_or_come(view))
    assert ended.isfinite().all()


def shoot_or_come(view):
    fight = shoot(view)
    nearest = view.snapshot.enemies.position.mean(1, keepdim=True)
    closer = move(view, nearest.expand_as(view.snapshot.allies.position))
    return torch.where(fight == 1, closer, fight)


@pytest.mark.parametrize("tick", [1, 2, 4])
def test_a_unit_walks_at_its_speed(tick):
    engine, _, battle = make("2m_vs_1z", tick=tick)
    after = engine.step(battle, torch.tensor([[NORTH, EAST]]).expand(8, 2))
    moved = (after.position - battle.position)[:, 0]
    torch.testing.assert_close(moved[:, 0], torch.tensor([0, 8 * 0.1406]))
    torch.testing.assert_close(moved[:, 1], torch.tensor([8 * 0.1406, 0]))


@pytest.mark.parametrize("tick", [1, 2, 4])
def test_every_shot_does_its_damage(tick):
    """Shots are counted by the cooldowns that they start; 6 to the shield, 5 behind the armour."""
    engine, _, battle = make("2m_vs_1z", tick=tick)
    # Out of each other's way for the whole test: the zealot cannot walk.
    engine.speed[2] = 0
    battle = place(battle, 2, 13.0, 17.0)
    attack = torch.tensor([[FIRST_ATTACK, 1]]).expand(8, 2)
    loops = 20 * 8
    for _ in range(20):
        battle = engine.step(battle, attack)
    shots = -(-loops // 13.7)  # the first at once
    assert battle.shield[:, 2].eq(0).all()
    behind = shots - 9  # the ninth meets the rest of the shield, 2 of 6, and the armour
    expected = 100 - (4 - 1) - 5 * behind
    assert battle.health[:, 2].sub(expected).abs().max() <= 5  # a shot may fall in the next tick
    assert battle.health[:, :2].eq(45).all()


def test_two_hits_meet_the_armour_twice():
    engine, _, battle = make("2s3z")
    total, number = torch.zeros(8, 10), torch.zeros(8, 10)
    total[:, 0], number[:, 0] = 16, 2  # a zealot's attack on a stalker
    health, shield = engine._hurt(battle, total, number)
    assert (health[:, 0].eq(80) & shield[:, 0].eq(64)).all()
    bare = replace(battle, shield=torch.zeros_like(battle.shield))
    health, _ = engine._hurt(bare, total, number)
    assert health[:, 0].eq(80 - 2 * (8 - 1)).all()


def test_bonus_damage():
    assert UNITS["colossus"].hit(UNITS["zergling"]) == 15
    assert UNITS["colossus"].hit(UNITS["stalker"]) == 10
    assert UNITS["stalker"].hit(UNITS["stalker"]) == 18


def test_a_colossus_sweeps_a_line_across_its_shot():
    engine, _, battle = make("2c_vs_64zg", copies=1)
    battle = place(battle, 0, 16.0, 19.0)
    far = torch.full((2, 1, 64), 5.0)
    # Straight south: the target, one at each end of the line, one behind it, one beyond its end.
    far[:, 0, :5] = torch.tensor([[16.0, 17.3, 14.7, 16.0, 18.5], [14.5, 14.5, 14.5, 13.5, 14.5]])
    battle = replace(battle, position=torch.cat([battle.position[..., :2], far], -1))
    hurt = engine.step(battle, torch.tensor([[FIRST_ATTACK, 1]])).health[0, 2:] < 30
    assert hurt[:5].tolist() == [True, True, True, False, False]
    assert not hurt[5:].any()


def test_shields_come_back_after_a_while_and_zerglings_heal():
    engine, _, battle = make("2s3z")
    hurt = replace(battle, shield=battle.shield - 40, health=battle.health - 10)
    engine.speed.zero_()
    for _ in range(20):
        hurt = engine.step(hurt, torch.ones(8, 5, dtype=torch.int64))
    assert (hurt.shield == battle.shield - 40).all()  # 160 loops have passed
    for _ in range(10):
        hurt = engine.step(hurt, torch.ones(8, 5, dtype=torch.int64))
    torch.testing.assert_close(hurt.shield, battle.shield - 40 + 80 * 0.125)
    assert (hurt.health == battle.health - 10).all()

    engine, _, battle = make("2c_vs_64zg")
    engine.speed.zero_()
    hurt = engine.step(
        replace(battle, health=battle.health - 10), torch.ones(8, 2, dtype=torch.int64)
    )
    torch.testing.assert_close(hurt.health[:, 2:], torch.full((8, 64), 25 + 8 * 0.38 / 22.4))


def test_the_zealot_goes_between_the_marines_until_it_sees_one():
    engine, _, battle = make("2m_vs_1z", copies=256)
    battle = place(place(battle, 0, 21.0, 24.5), 1, 20.0, 24.5)
    battle = place(battle, 2, 8.0, 10.0)
    for _ in range(20):
        battle = engine.step(battle, torch.ones(256, 2, dtype=torch.int64))
    x, y = battle.position[:, :, 2]
    torch.testing.assert_close(y, torch.full((256,), 12.0), atol=0.01, rtol=0)
    assert x.min() < 13.5
    assert x.max() > 18.5
    assert ((x >= 13) & (x <= 19)).all()


def test_a_zealot_stands_until_its_attack_is_over():
    engine, _, battle = make("2m_vs_1z", tick=1)
    battle = place(place(battle, 0, 13.0, 12.0), 2, 13.0, 12.9)
    stop = torch.ones(8, 2, dtype=torch.int64)
    struck = engine.step(battle, stop)
    assert struck.health[:, 0].eq(45 - 16).all()
    away = place(struck, 0, 13.0, 8.5)
    still = engine.step(away, stop)
    torch.testing.assert_close(still.position[:, :, 2], away.position[:, :, 2])
    after = engine.step(engine.step(still, stop), stop)
    assert (after.position[1, :, 2] < still.position[1, :, 2] - 0.5).all()


def test_zerglings_go_round_the_cliff():
    engine, _, battle = make("2c_vs_64zg", copies=2)
    free = engine.spec.walkable()
    engine.cooldown[2:] = torch.inf  # nobody dies
    for _ in range(40):
        battle = engine.step(battle, torch.ones(2, 2, dtype=torch.int64))
        x, y = battle.position[..., 2:].long()
        assert free[y, x].all()
    assert (battle.position[1, :, 2:] > 14).float().mean() > 0.9


@pytest.mark.parametrize("tick", [0, 3, 16])
def test_ticks_divide_a_step(tick):
    with pytest.raises(ValueError, match="give 1, 2, 4 or 8"):
        Engine(load_map("3m"), tick=tick)
