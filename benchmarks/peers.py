"""What ours is compared with: the plain way to do the same."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from sipo_trl.measures import WassersteinMeasure


def cdist_reward(states: Tensor, references: Tensor, variance: float) -> Tensor:
    """Compute an RBF reward [N] as one writes it down, with every pair in memory.

    Args:
        states: [N, F].
        references: [n, F].
        variance: the kernel's variance per feature.

    Example:
        >>> cdist_reward(torch.zeros(1, 2), torch.ones(3, 2), 0.5)
        tensor([-0.3679])
    """
    variance = variance * states.shape[1]
    return -torch.exp(-(torch.cdist(states, references) ** 2) / (2 * variance)).mean(dim=1)


class ModuleCritics:
    """The Wasserstein critics as modules with an optimiser each, updated one after another.

    Args:
        measure: ours, whose critics are copied; its entries must be no longer than its
            ``batch_size``, so that one update looks at all of them.

    Example:
        >>> measure = WassersteinMeasure([torch.zeros(3, 2)], normalize=False)
        >>> ModuleCritics(measure).update(torch.ones(5, 2)).shape
        torch.Size([1])
    """

    def __init__(self, measure: WassersteinMeasure) -> None:
        self.references = measure.references
        self.clip = measure.clip
        critics = measure.critics
        self.networks = [
            _network([weight[j] for weight in critics.weights], [b[j, 0] for b in critics.biases])
            for j in range(measure.num_references)
        ]
        for network, output in zip(self.networks, critics.output, strict=True):
            network.append(_linear(output.unsqueeze(1)))
        self.optimizers = [
            torch.optim.RMSprop(network.parameters(), lr=measure.lr) for network in self.networks
        ]
        self.reference_mean = torch.zeros_like(measure.reference_mean)

    def update(self, states: Tensor) -> Tensor:
        """Make one ascent step with each critic, and return their distances before it [J]."""
        distances = []
        for j, (network, optimizer) in enumerate(zip(self.networks, self.optimizers, strict=True)):
            references = self.references[j]
            distance = network(states).mean() - network(references).mean()
            optimizer.zero_grad()
            distance.neg().backward()
            optimizer.step()
            with torch.no_grad():
                for parameter in network.parameters():
                    parameter.clamp_(-self.clip, self.clip)
                # The next rewards are relative to this.
                self.reference_mean[j] = network(references).mean()
            distances.append(distance.detach())
        return torch.stack(distances)

    @torch.no_grad()
    def reward(self, states: Tensor) -> Tensor:
        """Compute the rewards [N, J], for a horizon of 1."""
        scores = torch.cat([network(states) for network in self.networks], dim=1)
        return scores - self.reference_mean


def _network(weights: Sequence[Tensor], biases: Sequence[Tensor]) -> nn.Sequential:
    """Make the hidden layers."""
    network = nn.Sequential()
    for weight, bias in zip(weights, biases, strict=True):
        network.append(_linear(weight, bias)).append(nn.LeakyReLU(0.2))
    return network


def _linear(weight: Tensor, bias: Tensor | None = None) -> nn.Linear:
    """Make a layer of a weight [in, out]."""
    inputs, outputs = weight.shape
    layer = nn.Linear(inputs, outputs, bias=bias is not None, dtype=weight.dtype)
    with torch.no_grad():
        layer.weight.copy_(weight.t())
        if bias is not None:
            layer.bias.copy_(bias)
    return layer
