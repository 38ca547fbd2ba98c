import pytest
import torch

from evaluation.population import InputError, load_population
from evaluation.rows import current_states, entropy_rows, positions
from sipo_trl.archive import Archive


def test_only_the_latest_of_stacked_states_counts(tmp_path):
    states = torch.arange(24.0).view(3, 8)
    Archive.create(tmp_path).append(states, config={"env": {"name": "x", "stack": 4}})
    (policy,) = load_population(tmp_path)
    assert torch.equal(current_states(policy), states[:, 6:])


def test_battles_have_a_row_per_living_agent(battle):
    policy, _ = load_population(battle)
    rows = entropy_rows(policy)
    assert rows.shape == (60, 4)
    agents = policy.states.view(40, 2, 4)
    torch.testing.assert_close(rows[:2], agents[0])
    torch.testing.assert_close(rows[40:], agents[20:, 0])
    assert positions(policy).shape == (60, 2)


def test_football_has_a_row_per_won_step_without_the_ball(football):
    policies = load_population(football).policies
    torch.testing.assert_close(entropy_rows(policies[0]), policies[0].states[:, :12])
    assert entropy_rows(policies[3]).shape == (0, 12)


def test_agents_that_do_not_share_the_features_are_refused(tmp_path):
    Archive.create(tmp_path).append(torch.zeros(4, 5), alive=torch.ones(4, 2))
    (policy,) = load_population(tmp_path)
    with pytest.raises(InputError, match="5 features cannot be shared by the 2 agents"):
        entropy_rows(policy)


def test_states_of_many_features_are_no_positions(tmp_path):
    Archive.create(tmp_path).append(torch.zeros(4, 5))
    (policy,) = load_population(tmp_path)
    with pytest.raises(InputError, match="no column 'position'"):
        positions(policy)
