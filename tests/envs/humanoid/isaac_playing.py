"""Moving the bodies of the packages that stand in for Isaac's."""

import torch
from tensordict import TensorDictBase
from tensordict.nn import TensorDictModule
from torch import Tensor
from torchrl.envs import EnvBase


def play(env: EnvBase, actions: Tensor) -> TensorDictBase:
    """Transitions [T, N] under given actions [T, N, 21], with the resets that TorchRL makes."""
    data, transitions = env.reset(), []
    for action in actions:
        transition, data = env.step_and_maybe_reset(data.set("action", action))
        transitions.append(transition.clone())
    return torch.stack(transitions)


def sinking(*speeds: float, steps: int) -> Tensor:
    """Actions [T, N, 21] under which each copy sinks 0.1 m per step times its speed."""
    actions = torch.zeros(steps, len(speeds), 21)
    actions[..., 0] = torch.tensor(speeds)
    return actions


def sinking_policy(*speeds: float) -> TensorDictModule:
    """What acts so."""
    (action,) = sinking(*speeds, steps=1)
    return TensorDictModule(lambda _: action, in_keys=["observation"], out_keys=["action"])
