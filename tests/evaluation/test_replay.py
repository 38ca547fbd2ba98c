import pytest
import torch
from evaluation_archives import navigation_run

from evaluation.landmarks import policy_landmarks
from evaluation.population import InputError, load_population
from evaluation.rollout import env_config, replay, try_replay
from sipo_trl.archive import Archive
from sipo_trl.envs import draw_landmarks


def states(population):
    return [policy.states for policy in population]


def test_policies_walk_as_they_were_trained_to(navigation):
    population = replay(load_population(navigation), episodes=3)
    east, north, west = population
    for policy, axis, sign in ((east, 0, 1), (north, 1, 1), (west, 0, -1)):
        first = policy.states[policy.column("step") == 0]
        assert len(first) == 3
        torch.testing.assert_close(first[:, axis], torch.full((3,), 0.1 * sign))
    assert "3 held-out episodes" in population.origin
    assert len(policy_landmarks(population)) == 3


def test_one_seed_decides_the_draws(navigation):
    stored = load_population(navigation)
    options = {"episodes": 2, "exploration": "sample"}
    first, again = (states(replay(stored, seed=1, **options)) for _ in range(2))
    other = states(replay(stored, seed=2, **options))
    assert all(map(torch.equal, first, again))
    assert not any(
        len(a) == len(b) and torch.equal(a, b) for a, b in zip(first, other, strict=True)
    )


def test_most_likely_actions_are_not_drawn(navigation):
    stored = load_population(navigation)
    first, other = (states(replay(stored, episodes=2, seed=seed)) for seed in (1, 2))
    assert all(map(torch.equal, first, other))


def test_the_world_is_the_one_of_training(tmp_path):
    landmarks = draw_landmarks(4, seed=0)
    goal = landmarks[2] / landmarks[2].abs().max()
    run = navigation_run(tmp_path / "run", directions=[tuple(goal.tolist())])
    played = replay(load_population(run), episodes=1, seed=5)
    assert policy_landmarks(played) == [2]


def test_the_global_generator_is_left_alone(navigation):
    torch.manual_seed(7)
    replay(load_population(navigation), episodes=2, exploration="sample")
    drawn = torch.rand(())
    torch.manual_seed(7)
    assert drawn == torch.rand(())


@pytest.mark.parametrize("name", ["chess", ["a", "list"], None])
def test_an_environment_that_is_not_there_is_named(tmp_path, name):
    config = {"env": {"name": name}} if name else {}
    Archive.create(tmp_path).append(torch.zeros(5, 2), config=config)
    stored = load_population(tmp_path)
    with pytest.raises(InputError, match="is not installed here"):
        env_config(stored.policies[0])
    same, why = try_replay(stored, episodes=2)
    assert same is stored
    assert "cannot be played" in why


def test_settings_of_another_version_are_explained(tmp_path):
    run = navigation_run(tmp_path / "run", gravity=9.81)
    with pytest.raises(
        InputError, match=r"settings do not fit the environment 'navigation'.*gravity"
    ):
        replay(load_population(run), episodes=1)


def test_no_episodes_are_refused(navigation):
    with pytest.raises(InputError, match="--episodes is 0"):
        replay(load_population(navigation), episodes=0)
