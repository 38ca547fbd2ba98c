import pytest
import torch
from tensordict import TensorDict
from torchrl.envs import check_env_specs

from sipo_trl.envs import SMACEnv
from sipo_trl.envs.smac import map_names

MAPS = sorted(map_names())
ACTION, MASK = ("agents", "action"), ("agents", "action_mask")


def draw(data, generator):
    """Random legal actions."""
    weights = data[MASK].float()
    choice = torch.multinomial(weights.flatten(0, 1), 1, generator=generator)
    return data.set(ACTION, choice.view(weights.shape[:-1]))


def play(env, data, generator, steps):
    rows = []
    for _ in range(steps):
        step, data = env.step_and_maybe_reset(draw(data, generator))
        rows.append(step)
    return torch.stack(rows, 1), data


def same(first, second):
    return bool((first == second).all())


@pytest.mark.parametrize("name", MAPS)
def test_specs(name):
    check_env_specs(SMACEnv(name, batch_size=[3], seed=0))


def test_keys_are_those_of_torchrls_wrapper():
    env = SMACEnv("3m", batch_size=[2], seed=0)
    data = env.rand_step(env.reset())
    names = ["reward", "done", "terminated", "truncated", "state", "success", "diversity_state"]
    agents = [("agents", name) for name in ("observation", "action_mask", "state", "alive")]
    info = [("info", name) for name in ("battle_won", "dead_allies", "dead_enemies")]
    assert all(
        ("next", *((key,) if isinstance(key, str) else key)) in data.keys(True)
        for key in [*names, *agents, *info]
    )
    assert data[ACTION].shape == (2, 3)
    assert data["agents", "alive"].shape == (2, 3, 1)
    assert data["position"].shape == (2, 3, 2)


@pytest.mark.parametrize("name", MAPS)
def test_random_legal_actions_break_nothing(name):
    """Fuzz: a thousand copies of this ran once over a million steps."""
    env = SMACEnv(name, batch_size=[16], seed=1)
    generator = torch.Generator().manual_seed(0)
    data = env.reset()
    free = torch.stack(
        [env.spec.walkable(climbs=unit.climbs) for unit in (*env.spec.allies, *env.spec.enemies)]
    )
    units = torch.arange(len(free))
    for _ in range(80):
        before = env.battles.battle
        step, data = env.step_and_maybe_reset(draw(data, generator))
        after = step["next"]
        check_step(env, before, after, free, units)


def check_step(env, before, after, free, units):
    position = torch.cat([after["position"], after["enemy_position"]], 1)
    alive = torch.cat([after["alive"], after["enemy_alive"]], 1)
    x, y = position.long().unbind(-1)
    assert free[units, y, x].all()
    assert not (alive & ~(before.health > 0)).any()  # nobody rises
    assert all(value.isfinite().all() for value in after.values(True, True))
    mask = after[MASK]
    assert mask.any(-1).all()
    assert (mask[..., 0] == ~after["alive"]).all()
    assert (
        after["terminated"] == ~(after["alive"].any(1) & after["enemy_alive"].any(1)).unsqueeze(1)
    ).all()
    assert (after["reward"] >= 0).all()
    # Nobody walks faster than it can, but for being pushed.
    assert (position - before.position.movedim(0, -1)).norm(dim=-1).max() < 4


def test_random_actions_of_the_spec_are_legal():
    env = SMACEnv("2m_vs_1z", batch_size=[32], seed=0)
    rollout = env.rollout(40, break_when_any_done=False)
    assert rollout[MASK].gather(-1, rollout[ACTION].unsqueeze(-1)).all()


def test_reward_of_a_won_battle_is_twenty():
    env = SMACEnv("2m_vs_1z", batch_size=[2], seed=0)
    data = env.reset()
    env.battles.health = env.battles.health * torch.tensor([1.0, 1.0, 0.01])
    env.battles.shield = torch.zeros_like(env.battles.shield)
    total = torch.zeros(2, 1)
    attack = torch.full((2, 2), 6)
    for _ in range(20):
        data = env.step(data.set(ACTION, attack))["next"]
        total += data["reward"]
        if data["done"].all():
            break
    assert data["success"].all()
    assert data["terminated"].all()
    assert not data["truncated"].any()
    assert data["info", "battle_won"].all()
    assert data["info", "dead_enemies"].eq(1).all()
    # All but the 149 that were taken away beforehand.
    torch.testing.assert_close(total, torch.full((2, 1), (360 - 149) * 20 / 360))


def test_time_out_is_a_truncation():
    env = SMACEnv("2m_vs_1z", batch_size=[2], seed=0)
    data = env.reset()
    env.battles.engine.speed.zero_()
    stop = torch.ones(2, 2, dtype=torch.int64)
    for step in range(150):
        assert not data["done"].any(), step
        data = env.step(data.set(ACTION, stop))["next"]
    assert data["truncated"].all()
    assert not data["terminated"].any()
    assert not data["success"].any()
    assert data["info", "episode_limit"].all()


def test_two_runs_are_equal_and_seeds_differ():
    def run(seed):
        env = SMACEnv("2m_vs_1z", batch_size=[16], seed=seed)
        return play(env, env.reset(), torch.Generator().manual_seed(3), 60)[0]

    first = run(0)
    assert same(first, run(0))
    assert not same(first["enemy_position"], run(1)["enemy_position"])


def test_copies_do_not_depend_on_each_others_resets():
    """A copy that is reset alone draws what it draws when all are reset together."""
    together, alone = (SMACEnv("2c_vs_64zg", batch_size=[3], seed=5) for _ in range(2))
    together.reset()
    together.reset()
    data = alone.reset()
    alone.reset(data.set("_reset", torch.tensor([[False], [True], [False]])))
    first, second = alone.battles.position, together.battles.position
    assert (first == second).all(-1).all(0).tolist() == [False, True, False]


def test_a_partial_reset_leaves_the_others_alone():
    env = SMACEnv("2m_vs_1z", batch_size=[4], seed=0)
    _, data = play(env, env.reset(), torch.Generator().manual_seed(0), 12)
    before = env.battles.battle
    fresh = env.reset(data.set("_reset", torch.tensor([[True], [False], [False], [True]])))
    after = env.battles.battle
    for name, value in vars(before).items():
        copies = 1 if name in ("position", "goal") else 0
        now = getattr(after, name).select(copies, 1), getattr(after, name).select(copies, 2)
        assert now[0].equal(value.select(copies, 1)), name
        assert now[1].equal(value.select(copies, 2)), name
    assert env.step_count.flatten().tolist() == [0, 12, 12, 0]
    assert (fresh["position"][[0, 3]] == torch.tensor([[13.0, 12.0], [19.0, 12.0]])).all()


@pytest.mark.parametrize("name", ["2m_vs_1z", "2c_vs_64zg"])
def test_state_is_restored_exactly(name):
    first = SMACEnv(name, batch_size=[4], seed=0)
    _, data = play(first, first.reset(), torch.Generator().manual_seed(0), 10)
    snapshot, kept = first.state_dict(), data.clone()
    expected, _ = play(first, data, torch.Generator().manual_seed(1), 30)
    second = SMACEnv(name, batch_size=[4], seed=9)
    second.load_state_dict(snapshot)
    found, _ = play(second, kept, torch.Generator().manual_seed(1), 30)
    assert same(expected, found)


def test_nothing_is_read_on_the_host():
    env = SMACEnv("2c_vs_64zg", batch_size=[4], seed=0, device="meta")
    env._reset()
    action = torch.zeros(4, 2, dtype=torch.int64, device="meta")
    data = TensorDict({"agents": TensorDict({"action": action}, [4, 2])}, [4])
    data["_step"] = torch.ones(4, 1, dtype=torch.bool, device="meta")
    assert env._step(data)["reward"].shape == (4, 1)
    chosen = torch.ones(4, 1, dtype=torch.bool, device="meta")
    assert env._reset(TensorDict({"_reset": chosen}, [4]))["state"].shape == (4, 342)


def test_mistakes_are_named():
    with pytest.raises(ValueError, match="batch_size"):
        SMACEnv("3m", batch_size=[])
    with pytest.raises(ValueError, match="choose from embedded"):
        SMACEnv("3m", batch_size=[1], backend="sc3")
