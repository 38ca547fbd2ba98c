"""A small environment with its diversity state where a test wants it."""

import torch
from tensordict import TensorDict, TensorDictBase
from tensordict.utils import NestedKey
from torchrl.data import Binary, Bounded, Composite, Unbounded
from torchrl.envs import EnvBase

LENGTH = 4

LAYOUTS: dict[str, tuple[NestedKey, NestedKey, tuple[int, ...]]] = {
    # where the state is, where the reward goes, the shape of what is measured
    "plain": ("diversity_state", "intrinsic_reward", ()),
    "nested": (("info", "diversity_state"), ("info", "intrinsic_reward"), ()),
    "agents": (("agents", "diversity_state"), ("agents", "intrinsic_reward"), (3,)),
}


class Walkers(EnvBase):
    """Points that go where they are told, for ``LENGTH`` steps."""

    def __init__(self, layout: str = "plain", batch_size: tuple[int, ...] = ()) -> None:
        super().__init__(batch_size=batch_size)
        self.state_key, _, group = LAYOUTS[layout]
        shape = (*batch_size, *group, 2)
        self.observation_spec = Composite(shape=batch_size)
        self.observation_spec[self.state_key] = Unbounded(shape)
        self.state_spec = self.observation_spec.clone()
        self.state_spec["time"] = Unbounded((*batch_size, 1), dtype=torch.int64)
        self.observation_spec["time"] = Unbounded((*batch_size, 1), dtype=torch.int64)
        self.action_spec = Composite(action=Bounded(-1, 1, shape), shape=batch_size)
        self.reward_spec = Unbounded((*batch_size, 1))
        self.full_done_spec = Composite(
            done=Binary(1, (*batch_size, 1), dtype=torch.bool), shape=batch_size
        )

    def _reset(self, tensordict: TensorDictBase | None = None, **kwargs: object) -> TensorDictBase:
        start = TensorDict(self.observation_spec.zero(), self.batch_size)
        return start.update(self.full_done_spec.zero())

    def _step(self, tensordict: TensorDictBase) -> TensorDictBase:
        time = tensordict["time"] + 1
        step = TensorDict({"time": time, "done": time >= LENGTH}, self.batch_size)
        step["reward"] = torch.ones_like(time, dtype=torch.float32)
        return step.set(self.state_key, tensordict.get(self.state_key) + tensordict["action"])

    def _set_seed(self, seed: int | None) -> None:
        torch.manual_seed(0 if seed is None else seed)
