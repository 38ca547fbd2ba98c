"""Workers that decide by themselves collect what one policy for all copies would have."""

from itertools import islice

import pytest
import torch
from tensordict.nn import TensorDictSequential
from torchrl.envs import CatFrames, TransformedEnv

from sipo_trl.envs import NavigationEnv
from sipo_trl.envs.episodes import remembering
from sipo_trl.envs.football import FootballEnv
from sipo_trl.models import make_actor, make_critic
from sipo_trl.training import WorkerCollector

pytest.importorskip("gfootball_engine", reason="gfootball is not installed: run make football")

COPIES, STEPS = 3, 25
NETWORK = {"hidden": [16], "activation": "relu", "layer_norm": True, "gru": 16}


@pytest.fixture
def make():
    made = []

    def make(stack=1, **options):
        # Attacks are over soon, so that there are several episodes.
        options = {"seed": 5, "workers": 2, "frame_skip": 4, "practice": 0.8, **options}
        env = FootballEnv(batch_size=[COPIES], **options)
        made.append(env)
        frames = CatFrames(stack, dim=-1, in_keys=["diversity_state"])
        return env if stack == 1 else TransformedEnv(env, frames)

    yield make
    for env in made:
        env.close()


def team(env, **options):
    torch.manual_seed(0)
    actor = make_actor(env, **{**NETWORK, **options})
    with torch.no_grad():  # a fresh one hardly looks at what it sees
        for parameter in actor.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
    return actor, make_critic(env, heads=2, **{**NETWORK, **options})


def collector(env, networks):
    return WorkerCollector(env, *networks, frames_per_batch=COPIES * STEPS)


@torch.no_grad()
def replayed(env, actor, critic, actions):
    """The same actions, step by step, with networks that are asked at every step."""
    policy = TensorDictSequential(actor, critic)
    env = remembering(env, policy)
    data, steps = env.reset(), []
    for action in actions.unbind(1):
        actor[0](data)
        data["agents", "action"] = action
        data["agents", "action_log_prob"] = actor[-1].get_dist(data).log_prob(action)
        step, data = env.step_and_maybe_reset(critic(data))
        steps.append(step.clone())
    return torch.stack(steps, 1)


@pytest.mark.parametrize(
    ("options", "networks"),
    [
        ({"stack": 4}, {}),
        ({"stack": 3, "diversity": "random"}, {"observation_norm": True}),
        ({"stack": 2, "diversity": "state_action"}, {"gru": None, "layer_norm": False}),
        ({"diversity": "full", "frame_skip": 2}, {"activation": "elu"}),
    ],
    ids=["stacked", "random", "no memory", "full"],
)
def test_a_batch_is_that_of_single_steps(make, options, networks) -> None:
    env, other = make(**options), make(**options)
    actor, critic = team(env, **networks)
    collect = collector(env, (actor, critic))
    batches = torch.cat(list(islice(collect, 3)), 1)
    expected = replayed(other, actor, critic, batches["agents", "action"])
    assert batches["is_init"].sum() > COPIES  # some have a second episode
    keys = set(batches.keys(True, True))
    missing = set(expected.keys(True, True)) - keys
    assert missing <= {("agents", "state_value"), "is_init", ("next", "is_init")}
    learned = ("logits", "action_log_prob", "actor_hidden", "critic_hidden", "state_value")
    for key in keys & set(expected.keys(True, True)):
        if key[-1] in learned:
            torch.testing.assert_close(batches[key], expected[key], atol=1e-5, rtol=1e-4)
        else:
            assert torch.equal(batches[key], expected[key]), key


def test_actions_are_drawn_as_the_policy_says(make) -> None:
    env = make()
    collect = collector(env, team(env))
    played, noises = env.play, []

    def play(weights, noise):
        noises.append(noise)
        return played(weights, noise)

    env.play = play
    batch = collect.next()
    best = (batch["agents", "logits"] + noises[0]).argmax(-1)
    assert torch.equal(best, batch["agents", "action"])
    # The best of scores with such noise is drawn by their softmax.
    scores = torch.tensor([0.0, 1.0, 2.0])
    drawn = (scores - torch.empty(100_000, 3).exponential_().log_()).argmax(-1)
    shares = torch.bincount(drawn, minlength=3) / len(drawn)
    torch.testing.assert_close(shares, scores.softmax(-1), atol=0.01, rtol=0)


def test_a_restored_collector_goes_on_with_the_same_bits(make) -> None:
    first, second = make(stack=4), make(stack=4, seed=9, workers=1)
    networks = team(first)
    one, two = collector(first, networks), collector(second, networks)
    one.next()
    two.next()
    state, generator = one.state_dict(), torch.get_rng_state()
    expected = [one.next(), one.next()]
    two.load_state_dict(state)
    torch.set_rng_state(generator)
    for batch in expected:
        assert (two.next() == batch).all()


def test_a_match_that_breaks_the_engine_is_lost_and_no_other(make) -> None:
    env, sound = make(), make()
    networks = team(env)
    broken, whole = collector(env, networks), collector(sound, networks)
    torch.manual_seed(1)
    broken.next()
    torch.manual_seed(1)
    whole.next()
    env.pool.arrays["state"][1] = 0  # the engine ends the process when it reads that
    env.pool.arrays["terminated"][1] = env.pool.arrays["truncated"][1] = False
    torch.manual_seed(2)
    batch = broken.next()
    torch.manual_seed(2)
    expected = whole.next()
    others = [0, 2]
    assert (batch[others] == expected[others]).all()
    following = batch["next"][1]
    assert following["lost"].flatten().tolist() == [True] + [False] * (STEPS - 1)
    assert following["truncated"][0]
    assert not following["terminated"][0]
    assert following["reward"][0] == 0
    assert not batch["is_init"][1, 0]
    assert batch["is_init"][1, 1]  # the next step starts a new episode
    assert env.pool.replaced == 1


def test_an_episode_that_cannot_start_is_lost_too(make) -> None:
    env = make()
    collect = collector(env, team(env))
    prepared = env.pool.arrays
    prepared["start_state"][1], prepared["start_length"][1] = 0, 1000
    prepared["start_seed"][1] = prepared["seed"][1]
    batch = collect.next()
    assert batch["next", "lost"].squeeze(-1).nonzero().tolist() == [[1, 0]]
    assert batch["is_init"][:, :2].squeeze(-1).tolist() == [
        [True, False],
        [True, True],
        [True, False],
    ]
    assert env.episode.flatten()[1] == env.pool.arrays["begun"][1] == batch["is_init"][1].sum()


def test_an_engine_that_never_starts_ends_the_run(make, monkeypatch) -> None:
    env = make()
    collect = collector(env, team(env))

    def fail(command, copies):
        return copies.copy()

    monkeypatch.setattr(env.pool, "run", fail)
    with pytest.raises(RuntimeError, match="failed at the start of 3 episodes in a row"):
        collect.next()


def test_who_cannot_decide_says_so(make) -> None:
    with pytest.raises(RuntimeError, match="call let_workers_decide first"):
        make().play(torch.zeros(1), torch.zeros(COPIES, STEPS, 3, 19))


def test_other_environments_are_refused() -> None:
    env = NavigationEnv(batch_size=[4], seed=0)
    with pytest.raises(ValueError, match=r"NavigationEnv cannot decide.*decide_in_workers=false"):
        WorkerCollector(env, make_actor(env), make_critic(env, heads=1), frames_per_batch=20)
