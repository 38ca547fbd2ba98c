"""TorchRL's own checklist for transforms, for three layouts of keys, and the whole contract."""

import copy
from functools import partial

import pytest
import torch
from tensordict import TensorDict
from tensordict.nn import TensorDictModule, TensorDictSequential
from torchrl.collectors import Collector
from torchrl.data import LazyTensorStorage, ReplayBuffer, TensorDictReplayBuffer
from torchrl.envs import Compose, ParallelEnv, RewardSum, SerialEnv, TransformedEnv
from torchrl.envs.utils import check_env_specs
from walkers import LAYOUTS, LENGTH, Walkers

from sipo_trl.archive import Archive
from sipo_trl.measures import FinalStateMeasure, RBFMeasure
from sipo_trl.transforms import StateDistanceReward

REFERENCES = [torch.randn(20, 2, generator=torch.Generator().manual_seed(j)) for j in range(3)]
J = len(REFERENCES)


def make_transform(layout: str = "plain", measure=None) -> StateDistanceReward:
    state, reward, _ = LAYOUTS[layout]
    return StateDistanceReward(measure or RBFMeasure(REFERENCES), [state], [reward])


def make_env(layout: str, batch_size: tuple[int, ...] = ()) -> TransformedEnv:
    return TransformedEnv(Walkers(layout, batch_size), make_transform(layout))


def check_rollout(rollout: TensorDict, layout: str) -> None:
    """The rewards of a rollout are those of the states that its steps led to."""
    state, reward, group = LAYOUTS[layout]
    found = rollout.get(("next", reward))
    assert found.shape == (*rollout.shape, *group, J)
    torch.testing.assert_close(found, RBFMeasure(REFERENCES).reward(rollout.get(("next", state))))
    assert reward not in rollout.exclude("next").keys(True)


@pytest.mark.parametrize("layout", LAYOUTS)
class TestTorchRLsChecklist:
    def test_single_trans_env_check(self, layout) -> None:
        check_env_specs(make_env(layout))

    def test_serial_trans_env_check(self, layout) -> None:
        env = SerialEnv(2, partial(make_env, layout))
        check_env_specs(env)
        check_rollout(env.rollout(LENGTH), layout)

    def test_parallel_trans_env_check(self, layout) -> None:
        env = ParallelEnv(2, partial(make_env, layout))
        try:
            check_env_specs(env)
            check_rollout(env.rollout(LENGTH), layout)
        finally:
            env.close(raise_if_closed=False)

    def test_trans_serial_env_check(self, layout) -> None:
        env = TransformedEnv(SerialEnv(2, partial(Walkers, layout)), make_transform(layout))
        check_env_specs(env)
        check_rollout(env.rollout(LENGTH), layout)

    def test_trans_parallel_env_check(self, layout) -> None:
        env = TransformedEnv(ParallelEnv(2, partial(Walkers, layout)), make_transform(layout))
        try:
            check_env_specs(env)
            check_rollout(env.rollout(LENGTH), layout)
        finally:
            env.close(raise_if_closed=False)

    def test_transform_no_env(self, layout) -> None:
        state, reward, group = LAYOUTS[layout]
        data = TensorDict({}, [5]).set(state, torch.randn(5, *group, 2))
        out = make_transform(layout)(data)
        torch.testing.assert_close(out.get(reward), RBFMeasure(REFERENCES).reward(data.get(state)))

    def test_transform_compose(self, layout) -> None:
        state, reward, group = LAYOUTS[layout]
        data = TensorDict({}, [5]).set(state, torch.randn(5, *group, 2))
        out = Compose(make_transform(layout))(data)
        assert out.get(reward).shape == (5, *group, J)

    def test_transform_env(self, layout) -> None:
        env = make_env(layout, (4,))
        check_env_specs(env)
        rollout = env.rollout(3 * LENGTH, break_when_any_done=False)
        assert rollout["next", "done"].sum() == 4 * 3
        check_rollout(rollout, layout)

    def test_transform_model(self, layout) -> None:
        state, reward, group = LAYOUTS[layout]
        double = TensorDictModule(lambda s: 2 * s, [state], [state])
        model = TensorDictSequential(double, make_transform(layout))
        states = torch.randn(5, *group, 2)
        out = model(TensorDict({}, [5]).set(state, states))
        torch.testing.assert_close(out.get(reward), RBFMeasure(REFERENCES).reward(2 * states))

    @pytest.mark.parametrize("buffer", [ReplayBuffer, TensorDictReplayBuffer])
    def test_transform_rb(self, layout, buffer) -> None:
        rb = buffer(storage=LazyTensorStorage(50), batch_size=30)
        rb.append_transform(make_transform(layout))
        rb.extend(Walkers(layout, (4,)).rollout(LENGTH).reshape(-1))
        check_rollout(rb.sample(), layout)

    def test_transform_inverse(self, layout) -> None:
        state, reward, group = LAYOUTS[layout]
        data = TensorDict({}, [5]).set(state, torch.randn(5, *group, 2))
        assert (make_transform(layout).inv(data) == data).all()
        assert reward not in data.keys(True)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_collectors_post_processing_gives_what_the_environment_gives(layout) -> None:
    torch.manual_seed(1)
    after = Collector(
        Walkers(layout, (4,)), None, frames_per_batch=48, total_frames=96,
        postproc=make_transform(layout),
    )  # fmt: skip
    for batch in after:
        assert batch.shape == (4, 12)
        check_rollout(batch, layout)
    within = Collector(make_env(layout, (4,)), None, frames_per_batch=48, total_frames=48)
    for batch in within:
        check_rollout(batch, layout)


def test_other_transforms_see_the_reward() -> None:
    env = make_env("plain", (2,))
    env.append_transform(RewardSum(in_keys=["intrinsic_reward"], out_keys=["distance"]))
    rollout = env.rollout(LENGTH)
    torch.testing.assert_close(
        rollout["next", "distance"], rollout["next", "intrinsic_reward"].cumsum(1)
    )


def test_an_empty_archive_writes_nothing_and_measures_nothing(tmp_path) -> None:
    transform = StateDistanceReward(Archive.create(tmp_path / "archive"))
    env = TransformedEnv(Walkers("plain", (4,)), transform)
    check_env_specs(env)
    assert env.rollout(LENGTH)["next", "intrinsic_reward"].shape == (4, LENGTH, 0)
    data = TensorDict({"diversity_state": torch.randn(3, 2)}, [3])
    assert transform(data)["intrinsic_reward"].shape == (3, 0)


def test_an_archive_stands_for_its_rbf_measure(tmp_path) -> None:
    archive = Archive.create(tmp_path / "archive")
    for states in REFERENCES:
        archive.append(states)
    data = TensorDict({"diversity_state": torch.randn(3, 2)}, [3])
    torch.testing.assert_close(
        StateDistanceReward(archive)(data.clone())["intrinsic_reward"],
        RBFMeasure(archive).reward(data["diversity_state"]),
    )


def test_final_states_count_only_at_the_end_of_an_episode() -> None:
    measure = FinalStateMeasure(REFERENCES)
    for layout in LAYOUTS:
        state, reward, _ = LAYOUTS[layout]
        env = TransformedEnv(Walkers(layout, (4,)), make_transform(layout, measure))
        rollout = env.rollout(2 * LENGTH, break_when_any_done=False)
        found = rollout.get(("next", reward))
        ends = rollout["next", "done"].squeeze(-1)
        torch.testing.assert_close(found[ends], measure.reward(rollout.get(("next", state))[ends]))
        assert not found[~ends].any()
        torch.testing.assert_close(make_transform(layout, measure)(rollout.clone()), rollout)


@pytest.mark.parametrize("weight", [2.0, torch.tensor([1.0, 2.0, 3.0])])
def test_with_a_weight_it_goes_straight_into_the_tasks_reward(weight) -> None:
    transform = StateDistanceReward(RBFMeasure(REFERENCES), weight=weight)
    env = TransformedEnv(Walkers("plain", (4,)), transform)
    check_env_specs(env)
    following = env.rollout(LENGTH)["next"]
    bonus = (weight * following["intrinsic_reward"]).sum(-1, keepdim=True)
    torch.testing.assert_close(following["reward"], 1 + bonus)


def test_a_teams_states_are_one_state_whose_distance_every_agent_gets() -> None:
    team = [torch.randn(20, 3, 2), torch.randn(10, 3, 2)]
    state, _, _ = LAYOUTS["agents"]
    task = ("agents", "reward")
    transform = StateDistanceReward(
        RBFMeasure(team), [state], weight=2.0, reward_key=task, state_ndim=2
    )
    following = TensorDict({state: torch.randn(4, 5, 3, 2), task: torch.randn(4, 5, 3, 1)}, [4, 5])
    before = following[task].clone()
    batch = transform(TensorDict({"next": following}, [4, 5]))["next"]
    torch.testing.assert_close(batch["intrinsic_reward"], RBFMeasure(team).reward(following[state]))
    assert batch["intrinsic_reward"].shape == (4, 5, 2)
    bonus = 2.0 * batch["intrinsic_reward"].sum(-1)
    torch.testing.assert_close(batch[task] - before, bonus[..., None, None].expand(4, 5, 3, 1))


class Pairs(RBFMeasure):
    """Remembers what it was asked about."""

    def reward(self, states, actions=None):
        self.asked = states, actions
        return super().reward(states)


def test_actions_are_measured_with_the_state_they_were_taken_in() -> None:
    measure = Pairs(REFERENCES)
    transform = StateDistanceReward(measure, in_keys=["diversity_state", "action"])
    rollout = Walkers("plain", (4,)).rollout(LENGTH)
    transform(rollout)
    states, actions = measure.asked
    assert torch.equal(states, rollout["diversity_state"])
    assert torch.equal(actions, rollout["action"])
    env = TransformedEnv(Walkers("plain", (4,)), copy.deepcopy(transform))
    stepped = env.step(env.rand_action(env.reset()))
    states, actions = env.transform.measure.asked
    assert torch.equal(states, stepped["diversity_state"])
    assert torch.equal(actions, stepped["action"])


def test_called_with_plain_tensors() -> None:
    states = torch.randn(5, 2)
    reward = make_transform()(diversity_state=states)
    torch.testing.assert_close(reward, RBFMeasure(REFERENCES).reward(states))


def test_images_have_three_dimensions() -> None:
    images = [torch.rand(6, 3, 8, 8) for _ in range(2)]
    transform = StateDistanceReward(RBFMeasure(images), state_ndim=3)
    data = TensorDict({"diversity_state": torch.rand(4, 5, 3, 8, 8)}, [4, 5])
    assert transform(data)["intrinsic_reward"].shape == (4, 5, 2)


def test_compiles_into_one_graph() -> None:
    transform = make_transform()
    batch = Walkers("plain", (4,)).rollout(LENGTH)
    compiled = torch.compile(transform, fullgraph=True, backend="eager")(batch.clone())
    torch.testing.assert_close(compiled, transform(batch))


def test_state_dict_carries_the_references() -> None:
    trained = make_transform()
    other = make_transform(measure=RBFMeasure([torch.randn(20, 2) for _ in range(J)]))
    states = torch.randn(5, 2)
    assert not torch.equal(trained(diversity_state=states), other(diversity_state=states))
    other.load_state_dict(trained.state_dict())
    assert torch.equal(trained(diversity_state=states), other(diversity_state=states))


def test_a_clone_works_on_its_own_and_in_another_environment() -> None:
    env = make_env("plain", (4,))
    clone = env.transform.clone()
    assert clone.parent is None
    check_env_specs(TransformedEnv(Walkers("plain", (4,)), clone))
    check_rollout(env.rollout(LENGTH), "plain")


def test_moves_to_another_device_without_reading_it() -> None:
    transform = make_transform().to("meta")
    batch = Walkers("plain", (4,)).rollout(LENGTH).to("meta")
    assert transform(batch)["next", "intrinsic_reward"].is_meta


def test_float64_states_keep_their_precision() -> None:
    data = TensorDict({"diversity_state": torch.randn(5, 2, dtype=torch.float64)}, [5])
    assert make_transform()(data)["intrinsic_reward"].dtype == torch.float64


def test_a_missing_state_is_named() -> None:
    transform = make_transform()
    with pytest.raises(KeyError, match=r"'diversity_state'.*set in_keys"):
        transform(TensorDict({"observation": torch.randn(5, 2)}, [5]))
    with pytest.raises(ValueError, match="one state key"):
        StateDistanceReward(RBFMeasure(REFERENCES), in_keys=["a", "b", "c"])
