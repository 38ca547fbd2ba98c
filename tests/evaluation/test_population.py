import pytest
import torch
from evaluation_archives import index_columns

from evaluation.population import InputError, load_population
from sipo_trl.archive import Archive


def test_rows_of_episodes_are_in_the_order_of_steps(tmp_path):
    order = torch.randperm(12)
    columns = {name: column[order] for name, column in index_columns(3, 4).items()}
    states = (10 * columns["episode"] + columns["step"]).float().unsqueeze(1)
    Archive.create(tmp_path).append(states, **columns)
    (policy,) = load_population(tmp_path)
    found = [policy.states[rows].flatten().tolist() for rows in policy.episodes]
    assert found == [[0, 1, 2, 3], [10, 11, 12, 13], [20, 21, 22, 23]]
    assert policy.final_states.flatten().tolist() == [3, 13, 23]


def test_wins_and_returns_are_those_of_episodes_not_of_states(tmp_path):
    success = torch.tensor([True] * 6 + [False])
    Archive.create(tmp_path).append(
        torch.zeros(7, 1),
        success=success,
        episode=torch.tensor([0] * 6 + [1]),
        step=torch.tensor([*range(6), 0]),
        **{"return": torch.tensor([3.0] * 6 + [1.0])},
    )
    (policy,) = load_population(tmp_path)
    assert policy.success_rate == 0.5
    assert policy.mean_return == 2.0
    assert [rows.tolist() for rows in policy.won_episodes] == [[*range(6)]]


def test_an_archive_of_bare_states_is_one_episode(tmp_path):
    Archive.create(tmp_path).append(torch.zeros(5, 2), metrics={"return": 7.0, "success": 0.25})
    population = load_population(tmp_path)
    (policy,) = population
    assert [len(rows) for rows in policy.episodes] == [5]
    assert (policy.won, policy.final_states) == (None, None)
    assert (policy.mean_return, policy.success_rate) == (7.0, 0.25)
    assert (population.env, population.run) == (None, None)


def test_a_run_folder_is_known(navigation):
    population = load_population(navigation)
    assert population.run == navigation
    assert population.env == "navigation"
    assert load_population(navigation / "archive").run == navigation


@pytest.mark.parametrize(
    ("config", "variance"),
    [
        ({"measure": {"name": "rbf", "variance": 0.1}, "env": {"rbf": {"variance": 1}}}, 0.1),
        ({"measure": {"name": "wd", "variance": 0.1}, "env": {"rbf": {"variance": 1}}}, 1.0),
        ({}, 0.02),
        ({"env": "mine"}, 0.02),
        ({"env": {"rbf": {"variance": -1}}}, 0.02),
        ({"env": {"rbf": {"variance": "wide"}}}, 0.02),
    ],
)
def test_the_kernel_is_as_wide_as_the_run_says(tmp_path, config, variance):
    Archive.create(tmp_path).append(torch.zeros(5, 2), config=config)
    assert load_population(tmp_path).kernel_variance == variance


def test_a_missing_column_is_named(tmp_path):
    Archive.create(tmp_path).append(torch.zeros(5, 2))
    (policy,) = load_population(tmp_path)
    with pytest.raises(InputError, match="no column 'ball', which this needs"):
        policy.column("ball")
