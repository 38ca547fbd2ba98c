import os
import signal

import pytest
import torch
from torchrl.envs.utils import check_env_specs

from sipo_trl.envs.config import ENVS
from sipo_trl.envs.episodes import remembering
from sipo_trl.envs.football import FootballEnv
from sipo_trl.models import make_actor
from sipo_trl.training.collector import ResumableCollector

COPIES, STEPS = 4, 12


@pytest.fixture
def make():
    made = []

    def make(**options):
        made.append(FootballEnv(**{"batch_size": [COPIES], "seed": 5, "workers": 2, **options}))
        return made[-1]

    yield make
    for env in made:
        env.close()


@pytest.fixture
def actions():
    generator = torch.Generator().manual_seed(0)
    return torch.randint(19, (STEPS, COPIES, 3), generator=generator)


def advance(env, data, actions):
    """Plays on; returns all that was reported [T, N], and what the next step starts from."""
    steps = []
    for action in actions:
        data["agents", "action"] = action
        step, data = env.step_and_maybe_reset(data)
        steps.append(step["next"].clone())
    return torch.stack(steps), data


def equal(first, second) -> bool:
    return bool((first == second).all())


def saved_matches(env) -> list[bytes]:
    """All that the engines know of them, which is far more than players see."""
    states, lengths = env.pool.arrays["state"], env.pool.arrays["length"].ravel()
    return [state[:length].tobytes() for state, length in zip(states, lengths, strict=True)]


def test_specs(make) -> None:
    check_env_specs(make(batch_size=[2]))


def test_the_course_depends_on_seed_and_actions_alone(make, actions) -> None:
    first, second, other = make(), make(workers=1), make(seed=6)
    steps, _ = advance(first, first.reset(), actions)
    again, _ = advance(second, second.reset(), actions)
    assert equal(steps, again)
    assert saved_matches(first) == saved_matches(second)
    different, _ = advance(other, other.reset(), actions)
    assert not torch.equal(steps["agents", "observation"], different["agents", "observation"])
    first.set_seed(5)
    replayed, _ = advance(first, first.reset(), actions)
    assert equal(steps, replayed)


def test_episodes_of_one_copy_differ(make) -> None:
    env = make()
    assert len(set(env.pool.arrays["seed"].tolist())) == COPIES
    before = env.pool.arrays["seed"].copy()
    env.reset()
    assert not (env.pool.arrays["seed"] == before).any()


def test_partial_resets_leave_the_others_alone(make, actions) -> None:
    env, undisturbed = make(), make()
    _, data = advance(env, env.reset(), actions[:6])
    advance(undisturbed, undisturbed.reset(), actions[:6])
    data["_reset"] = torch.tensor([[False], [True], [False], [False]])
    data = env.reset(data)
    others = [0, 2, 3]
    steps, _ = advance(env, data, actions[6:])
    expected, _ = advance(undisturbed, undisturbed._report(), actions[6:])
    assert equal(steps[:, others], expected[:, others])
    assert env.episode.flatten().tolist() == [1, 2, 1, 1]


def test_copies_that_are_not_to_step_stay_as_they_are(make, actions) -> None:
    env = make()
    _, data = advance(env, env.reset(), actions[:6])
    before = data.clone()
    data["agents", "action"] = actions[6]
    data["_step"] = torch.tensor([True, False, True, False])
    after = env.step(data)["next"]
    for key in ("diversity_state", "ball", ("agents", "observation")):
        assert equal(after[key][1], before[key][1])
        assert not equal(after[key][0], before[key][0])
    assert after["reward"][1] == 0


def test_a_state_dict_restores_matches_in_the_midst_of_play(make, actions) -> None:
    env, other = make(), make(seed=9, workers=1)
    _, data = advance(env, env.reset(), actions[:7])
    state = env.state_dict()
    expected, _ = advance(env, data.clone(), actions[7:])
    advance(other, other.reset(), actions[:3])
    other.load_state_dict(state)
    restored, _ = advance(other, data, actions[7:])
    assert equal(restored, expected)
    # The next episodes are the same too.
    assert equal(other.reset(), env.reset())


def test_a_resumed_collector_yields_the_same_bits(make) -> None:
    torch.manual_seed(0)
    first, second = make(), make(seed=9)
    actor = make_actor(first, hidden=[8], gru=8)

    def collector(env):
        return ResumableCollector(
            remembering(env, actor),
            actor,
            frames_per_batch=COPIES * 5,
            total_frames=-1,
            auto_register_policy_transforms=False,
        )

    one, two = collector(first), collector(second)
    one.next()
    two.next()
    two.load_state_dict(one.state_dict())
    generator = torch.get_rng_state()
    expected = one.next()
    torch.set_rng_state(generator)
    assert equal(expected, two.next())


def test_the_default_diversity_state_is_a_part_of_the_observation(make, actions) -> None:
    env = make()
    steps, _ = advance(env, env.reset(), actions)
    observation, playing = steps["agents", "observation"][:, :, 0], ~steps["done"].squeeze(-1)
    expected = torch.cat([observation[..., columns] for columns in _columns()], -1)
    assert steps["diversity_state"].shape == (STEPS, COPIES, 18)
    assert equal(steps["diversity_state"][playing], expected[playing])
    assert equal(steps["position"].flatten(-2), steps["diversity_state"][..., :6])
    assert equal(steps["ball"], steps["diversity_state"][..., -6:-3])


def _columns():
    return slice(2, 8), slice(24, 30), slice(88, 94)


def test_other_diversity_states(make, actions) -> None:
    default = make()
    attackers, _ = advance(default, default.reset(), actions)
    for diversity, size in (("full", 115), ("random", 36), ("state_action", 75)):
        env = make(diversity=diversity)
        assert env.observation_spec["diversity_state"].shape == (COPIES, size)
        start = env.reset()
        steps, _ = advance(env, start.clone(), actions)
        states = steps["diversity_state"]
        if diversity == "full":
            assert equal(states[..., 88:94], steps["agents", "observation"][:, :, 0, 88:94])
            continue
        assert equal(states[..., :18], attackers["diversity_state"])
        rest = states[..., 18:]
        if diversity == "state_action":
            assert equal(start["diversity_state"][:, 18:], torch.zeros(COPIES, 57))
            chosen = rest.unflatten(-1, (3, 19)).argmax(-1)
            assert equal(rest.sum(-1), torch.full((STEPS, COPIES), 3.0))
            assert equal(chosen, actions)
        else:
            assert rest.unique().numel() == rest.numel()
            assert rest.abs().max() <= 1
            assert rest.mean().abs() < 0.1


def test_skipped_frames_add_up(make, actions) -> None:
    env, skipping = make(batch_size=[1]), make(batch_size=[1], frame_skip=3)
    kick = torch.tensor([[5, 5, 5]])
    idle = torch.zeros_like(kick)
    steps, _ = advance(env, env.reset(), [kick, idle, idle] * 3)
    skipped, _ = advance(skipping, skipping.reset(), [kick] * 3)
    assert equal(skipped["ball"], steps["ball"][2::3])
    rewards = steps["reward"].unflatten(0, (3, 3)).sum(1)
    torch.testing.assert_close(skipped["reward"], rewards)
    assert skipping.horizon == 134


def test_attacks_to_practise_begin_nearer_to_the_goal(make) -> None:
    task, attack = make().reset(), make(practice=1.0).reset()
    assert not task["practice"].any()
    assert attack["practice"].all()
    assert (attack["ball"][:, 0] > task["ball"][:, 0]).all()
    assert (attack["position"][..., 0] >= task["position"][..., 0] - 1e-3).all()
    near = (attack["position"] - attack["ball"][:, None, :2]).norm(dim=-1).argmin(-1)
    assert len(near.unique()) > 1  # not always the same player has the ball


def test_matches_that_began_elsewhere_share_an_engine(make, actions) -> None:
    env, alone, other = (make(practice=0.5, workers=workers) for workers in (2, 1, 1))
    steps, _ = advance(env, env.reset(), actions)
    assert 0 < steps["practice"].float().mean() < 1
    again, data = advance(alone, alone.reset(), actions[:7])
    assert equal(again, steps[:7])
    other.load_state_dict(alone.state_dict())
    restored, _ = advance(other, data, actions[7:])
    assert equal(restored, steps[7:])


def test_an_attack_to_practise_pays_the_goal_alone(make) -> None:
    env = make(practice=1.0, batch_size=[8], frame_skip=4)
    data, shot = env.reset(), torch.full((8, 3), 12)
    steps, _ = advance(env, data, [shot] * 20)
    assert set(steps["reward"].unique().tolist()) <= {-1.0, 0.0, 1.0}
    assert steps["success"].any()


def test_a_match_that_breaks_the_engine_is_lost_and_no_other(make, actions) -> None:
    env, sound = make(), make()
    _, data = advance(env, env.reset(), actions[:6])
    advance(sound, sound.reset(), actions[:6])
    env.pool.arrays["state"][1] = 0  # the engine ends the process when it reads that
    data["agents", "action"] = actions[6]
    step, data = env.step_and_maybe_reset(data)
    lost = step["next"]
    assert lost["lost"].flatten().tolist() == [False, True, False, False]
    assert lost["truncated"][1]
    assert lost["done"][1]
    assert not lost["terminated"][1]
    assert not lost["success"][1]
    assert lost["reward"][1] == 0
    assert env.pool.replaced == 1
    assert not data["lost"].any()
    steps, _ = advance(env, data, actions[7:])
    expected, _ = advance(sound, sound._report(), actions[6:])
    others = [0, 2, 3]
    assert equal(steps[:, others], expected[1:, others])
    assert not steps["lost"].any()


def test_a_worker_killed_between_steps_loses_nothing(make, actions) -> None:
    env, sound = make(), make()
    _, data = advance(env, env.reset(), actions[:6])
    for pid in env.pool.pids:
        os.kill(pid, signal.SIGKILL)
    steps, _ = advance(env, data, actions[6:])
    expected, _ = advance(sound, sound.reset(), actions)
    assert equal(steps, expected[6:])
    assert env.pool.replaced == 2


def test_mistakes_are_named() -> None:
    with pytest.raises(ValueError, match="scenario is 'penalty': choose from academy_3"):
        FootballEnv("penalty", batch_size=[1])
    with pytest.raises(ValueError, match="diversity is 'all'"):
        FootballEnv(batch_size=[1], diversity="all")
    with pytest.raises(ValueError, match=r"batch_size is \[\]"):
        FootballEnv(batch_size=[])
    with pytest.raises(ValueError, match="frame_skip is 0"):
        FootballEnv(batch_size=[1], frame_skip=0)
    with pytest.raises(ValueError, match=r"practice is 1\.5"):
        FootballEnv(batch_size=[1], practice=1.5)


def test_a_missing_engine_is_named(monkeypatch) -> None:
    monkeypatch.setattr("sipo_trl.envs.football.env.find_spec", lambda name: None)
    with pytest.raises(ImportError, match="run `make football`"):
        FootballEnv(batch_size=[1])


@pytest.mark.parametrize("name", ["football_3v1", "football_counterattack", "football_corner"])
def test_the_settings_make_it(name) -> None:
    config = ENVS[name](frame_skip=2, workers=1)
    env = config.make(1, seed=0)
    data = env.rollout(2)
    assert config.horizon == env.base_env.horizon == 201
    size = 4 * (4 * env.base_env.agents + 6)
    assert data["diversity_state"].shape == (1, 2, size)
    assert all(key in data["next"].keys() for key in config.columns)
    env.close()


def test_practice_alone_is_refused() -> None:
    with pytest.raises(ValueError, match=r"env\.practice is 1\.0: give a share below 1"):
        ENVS["football_3v1"](practice=1.0)


@pytest.mark.parametrize("name", ["football_3v1", "football_counterattack", "football_corner"])
def test_only_who_learns_practises(name) -> None:
    config = ENVS[name](workers=1, practice=0.9999)
    task, practice = config.make(1, seed=0), config.make_practice(1, seed=0)
    assert [env.reset()["practice"].item() for env in (task, practice)] == [False, True]
    for env in (task, practice):
        env.close()
