from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from tensordict import TensorDict, TensorDictBase
from torchrl.data import Categorical, Composite, Unbounded
from torchrl.envs import EnvBase, GymEnv
from torchrl.envs.libs.vmas import VmasEnv
from torchrl.testing.mocking_classes import (
    ContinuousActionConvMockEnv,
    ContinuousActionVecMockEnv,
    DiscreteActionVecMockEnv,
)


class TeamEnv(EnvBase):
    """Three agents, noise as observations and state, and masks that change at every step."""

    agents, choices, horizon = 3, 5, 4

    def __init__(self, envs: int = 2, *, state: bool = True) -> None:
        super().__init__(batch_size=[envs])
        legal = Categorical(2, shape=(envs, self.agents, self.choices), dtype=torch.bool)
        group = Composite(
            observation=Unbounded((envs, self.agents, 6)),
            action_mask=legal,
            shape=(envs, self.agents),
        )
        self.observation_spec = Composite(agents=group, shape=(envs,))
        if state:
            self.observation_spec["state"] = Unbounded((envs, 7))
        action = Categorical(self.choices, shape=(envs, self.agents))
        self.action_spec = Composite(
            agents=Composite(action=action, shape=(envs, self.agents)), shape=(envs,)
        )
        self.reward_spec = Unbounded((envs, 1))
        self.full_done_spec = Composite(
            done=Categorical(2, shape=(envs, 1), dtype=torch.bool),
            truncated=Categorical(2, shape=(envs, 1), dtype=torch.bool),
            terminated=Categorical(2, shape=(envs, 1), dtype=torch.bool),
            shape=(envs,),
        )
        self.steps = torch.zeros(envs, 1)

    def _observe(self) -> TensorDict:
        observed = self.observation_spec.rand()
        mask = torch.rand(self.batch_size[0], self.agents, self.choices) < 0.4
        mask[..., 0] |= ~mask.any(-1)
        return observed.set(("agents", "action_mask"), mask)

    def _reset(self, tensordict: TensorDictBase | None) -> TensorDict:
        reset = None if tensordict is None else tensordict.get("_reset", None)
        everyone = torch.ones_like(self.steps, dtype=torch.bool)
        self.steps[everyone if reset is None else reset] = 0
        return self._observe()

    def _step(self, tensordict: TensorDictBase) -> TensorDict:
        self.steps += 1
        out = self._observe().set("reward", torch.zeros_like(self.steps))
        truncated = self.steps >= self.horizon
        out.update({"truncated": truncated, "done": truncated})
        return out.set("terminated", torch.zeros_like(truncated))

    def _set_seed(self, seed: int | None) -> None:
        torch.manual_seed(seed or 0)


def vmas(*, categorical: bool = True, continuous: bool = True) -> EnvBase:
    return VmasEnv(
        "navigation",
        num_envs=2,
        n_agents=3,
        max_steps=5,
        seed=0,
        continuous_actions=continuous,
        categorical_actions=categorical,
    )


ENVIRONMENTS: dict[str, Callable[[], EnvBase]] = {
    "mock continuous": ContinuousActionVecMockEnv,
    "mock one-hot": DiscreteActionVecMockEnv,
    "mock pixels": ContinuousActionConvMockEnv,
    "Pendulum": lambda: GymEnv("Pendulum-v1"),
    "CartPole one-hot": lambda: GymEnv("CartPole-v1"),
    "CartPole categorical": lambda: GymEnv("CartPole-v1", categorical_action_encoding=True),
    "VMAS continuous": vmas,
    "VMAS categorical": lambda: vmas(continuous=False),
    "VMAS one-hot": lambda: vmas(continuous=False, categorical=False),
    "masked team": TeamEnv,
}


@pytest.fixture(params=ENVIRONMENTS)
def env(request: pytest.FixtureRequest) -> EnvBase:
    return ENVIRONMENTS[request.param]()


@pytest.fixture
def make_env() -> Callable[[str], EnvBase]:
    return lambda name: ENVIRONMENTS[name]()


@pytest.fixture
def team_env() -> type[TeamEnv]:
    return TeamEnv
