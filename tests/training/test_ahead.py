"""A collector in a process of its own, as slow to start as torch is: few are made."""

import os
import signal
from copy import deepcopy
from functools import partial

import pytest
import torch
from settings import small_config
from tensordict import TensorDictBase
from torch.nn.utils import parameters_to_vector

from sipo_trl.measures import FinalStateMeasure
from sipo_trl.training import Attempt, RunError
from sipo_trl.training.ahead import AheadCollector
from sipo_trl.training.attempt import collect_anew
from sipo_trl.training.config import CollectorConfig, ITRConfig, NetworkConfig


def settings(**changes: object) -> ITRConfig:
    collector = CollectorConfig(num_envs=8, frames_per_batch=80, ahead=True)
    return small_config(collector=collector, **changes)


def make_attempt(config: ITRConfig) -> Attempt:
    torch.manual_seed(0)
    return Attempt(config, config.env.make(8, seed=0), FinalStateMeasure([torch.zeros(1, 2)]))


def weights(attempt: Attempt) -> torch.Tensor:
    return parameters_to_vector(attempt.learner.policy.parameters()).clone()


def probabilities(attempt: Attempt, batch: TensorDictBase) -> torch.Tensor:
    with torch.no_grad():
        return attempt.learner.actor.get_dist(batch.copy()).log_prob(batch["action"])


@pytest.mark.parametrize("gru", [None, 8], ids=["plain", "recurrent"])
def test_a_stopped_attempt_goes_on_exactly(gru) -> None:
    config = settings(network=NetworkConfig(hidden=[8], gru=gru))
    first = make_attempt(config)
    first.step()
    begun = weights(first)
    states = {name: deepcopy(part.state_dict()) for name, part in first.components().items()}
    rng = torch.get_rng_state()
    for _ in range(2):
        first.step()

    second = make_attempt(config)
    second.step()
    assert torch.equal(weights(second), begun)  # one seed, one result
    second.step()  # now further than where it is to go on
    for name, part in second.components().items():
        part.load_state_dict(states[name])
    torch.set_rng_state(rng)
    for _ in range(2):
        second.step()
    assert torch.equal(weights(second), weights(first))
    for attempt in (first, second):
        attempt.close()


def test_a_batch_is_by_the_policy_of_one_update_before() -> None:
    attempt = make_attempt(settings())
    attempt.collect()  # hands out the first batch; the next is by the same policy
    batch = attempt.collect()
    for parameter in attempt.learner.policy.parameters():
        parameter.data.mul_(1.5)
    following = attempt.collect()
    for late in (batch, following):
        assert not torch.allclose(probabilities(attempt, late), late["action_log_prob"])
    newest = attempt.collect()
    torch.testing.assert_close(probabilities(attempt, newest), newest["action_log_prob"])
    attempt.close()


def test_a_process_that_is_killed_is_missed_and_none_is_left_behind() -> None:
    attempt = make_attempt(settings())
    collector = attempt.collector
    assert isinstance(collector, AheadCollector)
    attempt.collect()
    process = collector._process
    os.kill(process.pid, signal.SIGINT)  # Ctrl-C is not for it
    attempt.collect()
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    with pytest.raises(RunError, match=r"exit code -9.*collector\.ahead=false"):
        attempt.collect()
    attempt.close()
    assert not process.is_alive()


def test_what_goes_wrong_there_is_told_here() -> None:
    config = settings()
    local = make_attempt(small_config())
    config.env.num_landmarks = -1
    collector = AheadCollector(
        partial(collect_anew, config), local.learner.policy, local.collector.state_dict()
    )
    with pytest.raises(RunError, match="landmarks"):
        collector.next()
    collector.shutdown()
