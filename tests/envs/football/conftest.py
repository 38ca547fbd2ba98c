"""gfootball's own environments, to compare with."""

import warnings

import pytest

pytest.importorskip("gfootball_engine", reason="gfootball is not installed: run make football")

# gfootball's own scenario of the name, but with the keeper out of the agents' reach.
SCENARIO = """
from gfootball.scenarios import {name} as original, e_PlayerRole_GK


class Builder:
    def __init__(self, builder):
        self.builder = builder

    def __getattr__(self, name):
        return getattr(self.builder, name)

    def AddPlayer(self, x, y, role):
        left = self.builder._active_team == self.builder._active_team.e_Left
        self.builder.AddPlayer(x, y, role, controllable=not left or role != e_PlayerRole_GK)


def build_scenario(builder):
    original.build_scenario(Builder(builder))
"""


@pytest.fixture(scope="session")
def wrapped(tmp_path_factory):
    """Makes gfootball's wrapped environment of a scenario and a number of agents."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import gfootball.env
        import gfootball.scenarios

    folder = tmp_path_factory.mktemp("scenarios")
    gfootball.scenarios.__path__.append(str(folder))

    def make(scenario: str, agents: int):
        (folder / f"fixed_{scenario}.py").write_text(SCENARIO.format(name=scenario))
        return gfootball.env.create_environment(
            f"fixed_{scenario}",
            representation="simple115v2",
            rewards="scoring,checkpoints",
            number_of_left_players_agent_controls=agents,
        )

    yield make
    gfootball.scenarios.__path__.remove(str(folder))
