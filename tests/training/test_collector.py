import torch
from torchrl.envs import CatFrames, InitTracker, TransformedEnv, VmasEnv

from sipo_trl.envs import NavigationEnv
from sipo_trl.models import make_actor
from sipo_trl.training import ResumableCollector


def make_collector(transformed: bool) -> ResumableCollector:
    env = NavigationEnv(batch_size=[5], seed=0, horizon=7)
    if transformed:
        env = TransformedEnv(env, CatFrames(3, dim=-1, in_keys=["diversity_state"]))
        env.append_transform(InitTracker())
    torch.manual_seed(0)
    return ResumableCollector(
        env,
        make_actor(env),
        frames_per_batch=50,
        total_frames=-1,
        track_traj_ids=False,
        auto_register_policy_transforms=False,
    )


def test_a_restored_collector_goes_on_with_the_same_bits() -> None:
    for transformed in (False, True):
        first, second = make_collector(transformed), make_collector(transformed)
        first.next()
        state, rng = first.state_dict(), torch.get_rng_state()
        expected = [first.next(), first.next()]
        second.next()
        second.load_state_dict(state)
        torch.set_rng_state(rng)
        for batch in expected:
            restored = second.next()
            assert (restored == batch).all()
        assert second.state_dict()["frames"] == first.state_dict()["frames"] == 150


def test_a_saved_state_does_not_change_with_the_collector() -> None:
    collector = make_collector(transformed=True)
    collector.next()
    state = collector.state_dict()
    before = state["carrier"]["observation"].clone()
    collector.next()
    assert torch.equal(state["carrier"]["observation"], before)


def test_groups_of_agents_keep_their_batch_size() -> None:
    def make() -> ResumableCollector:
        env = VmasEnv("balance", num_envs=2, n_agents=3, seed=0)
        return ResumableCollector(env, env.rand_action, frames_per_batch=8, total_frames=-1)

    first, second = make(), make()
    first.next()
    second.load_state_dict(first.state_dict())
    assert second._carrier["agents"].batch_size == (2, 3)
    assert second.next().batch_size == (2, 4)
