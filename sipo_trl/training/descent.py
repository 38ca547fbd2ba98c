"""The way of some networks down their losses."""

from collections.abc import Callable, Sequence
from itertools import chain, islice

import torch
from tensordict import TensorDict, TensorDictBase
from torch import Tensor, nn

from sipo_trl.training.compilation import compiled
from sipo_trl.training.config import PPOConfig

Losses = Callable[[TensorDictBase], TensorDict]


class Descent:
    """Learns the parameters of some networks by the gradient of their losses.

    Args:
        networks: what learns, and the first learning rate of each.
        losses: a batch's losses, whose sum is to fall, at names that start with ``loss_``, and
            what else is worth knowing.
        ppo: minibatches, precision, bound of each network's gradient, and whether it is compiled.

    Attributes:
        optimizer: whose state is all the state that there is.
    """

    def __init__(
        self, networks: Sequence[tuple[nn.Module, float]], losses: Losses, *, ppo: PPOConfig
    ) -> None:
        self.losses, self.ppo = losses, ppo
        self.parameters = [list(network.parameters()) for network, _ in networks]
        groups = [
            {"params": parameters, "lr": lr}
            for parameters, (_, lr) in zip(self.parameters, networks, strict=True)
        ]
        self.optimizer = torch.optim.Adam(groups, eps=1e-5, fused=True)
        self._step = compiled(self._gradients) if ppo.compile else self._gradients

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
                for parameter, gradient in zip(chain(*self.parameters), gradients, strict=True):
                    parameter.grad = gradient
                self.optimizer.step()
                seen.append(values)
        return torch.stack(seen).mean(0)

    def _gradients(self, minibatch: TensorDictBase) -> tuple[TensorDict, list[Tensor]]:
        """The losses, and their gradients by all parameters, bounded for each network."""
        low = self.ppo.precision == "bfloat16"
        with torch.autocast(self.parameters[0][0].device.type, torch.bfloat16, enabled=low):
            values = self.losses(minibatch)
        total = sum(value for name, value in values.items() if name.startswith("loss_"))
        bounded: list[Tensor] = []
        remaining = iter(torch.autograd.grad(total, list(chain(*self.parameters))))
        for parameters in self.parameters:
            gradients = list(islice(remaining, len(parameters)))
            # Norms of all gradients at once have no function in C that compiled code could call.
            norm = nn.utils.get_total_norm(gradients, foreach=not self.ppo.compile)
            scale = (self.ppo.max_grad_norm / (norm + 1e-6)).clamp(max=1.0)
            bounded += [gradient * scale for gradient in gradients]
        return values.detach(), bounded
