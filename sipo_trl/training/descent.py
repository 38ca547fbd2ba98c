"""One network's way down its loss."""

from collections.abc import Callable, Sequence

import torch
from tensordict import TensorDict, TensorDictBase
from torch import Tensor, nn

from sipo_trl.training.compilation import compiled
from sipo_trl.training.config import PPOConfig

Losses = Callable[[TensorDictBase], TensorDict]
Step = Callable[[TensorDictBase], tuple[TensorDict, list[Tensor]]]


class Descent:
    """Learns the parameters of one network by the gradient of its losses.

    Args:
        network: what learns.
        losses: a batch's losses, whose sum is to fall, at names that start with ``loss_``, and
            what else is worth knowing.
        lr: the first learning rate.
        ppo: minibatches, precision, bound of the gradient's norm, and whether it is compiled.

    Attributes:
        optimizer: whose state is all the state that there is.
    """

    def __init__(self, network: nn.Module, losses: Losses, *, lr: float, ppo: PPOConfig) -> None:
        self.losses, self.ppo = losses, ppo
        self.parameters = list(network.parameters())
        self.optimizer = torch.optim.Adam(self.parameters, lr=lr, eps=1e-5, fused=True)
        self._step: Step = compiled(self._gradients) if ppo.compile else self._gradients

    def learn(self, batch: TensorDictBase, orders: Sequence[slice | Tensor]) -> TensorDict:
        """One epoch for each order; returns the means of all that the losses return.

        Args:
            batch: what to learn from [n, ...].
            orders: how each epoch arranges it, before it is divided into minibatches.
        """
        seen = []
        for order in orders:
            for minibatch in batch[order].chunk(self.ppo.minibatches):
                values, gradients = self._step(minibatch)
                for parameter, gradient in zip(self.parameters, gradients, strict=True):
                    parameter.grad = gradient
                self.optimizer.step()
                seen.append(values)
        return torch.stack(seen).mean(0)

    def _gradients(self, minibatch: TensorDictBase) -> tuple[TensorDict, list[Tensor]]:
        """The losses, and their gradients by all parameters, bounded."""
        low = self.ppo.precision == "bfloat16"
        with torch.autocast(self.parameters[0].device.type, torch.bfloat16, enabled=low):
            values = self.losses(minibatch)
        total = sum(value for name, value in values.items() if name.startswith("loss_"))
        gradients = torch.autograd.grad(total, self.parameters)
        # Norms of all gradients at once have no function in C that compiled code could call.
        norm = nn.utils.get_total_norm(gradients, foreach=False)
        scale = (self.ppo.max_grad_norm / (norm + 1e-6)).clamp(max=1.0)
        return values.detach(), [gradient * scale for gradient in gradients]
