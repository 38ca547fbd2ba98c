"""Mean kernel values of states with two features, whatever the number of references."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

# Half the distance, in the kernel's units, beyond which its value is below exp(-80): zero.
_REACH = math.sqrt(160 * math.log2(math.e)) / 2 + 3
# Spacing of the nodes: the relative error is 2 exp(-7.1 / spacing^2), here 1e-7.
_SPACING = 0.65
_MOST_NODES = 2**16
# A product and sum of a grid costs so much less than an exponential.
_CHEAPER = 10
_ELEMENTS = 2**21


class KernelGrid(nn.Module):
    r"""The mean kernel :math:`\mathbb{E}_{s'} 2^{-\|z - z'\|^2 / 2}` to each entry, by a grid.

    With any equally spaced nodes :math:`g` that are dense enough, :math:`2^{-(z - z')^2/2}` is a
    constant times :math:`\sum_g 2^{-(z - g)^2} 2^{-(z' - g)^2}`: as a function of :math:`g` each
    product is a Gaussian around the middle of both points, whose sum over a lattice does not
    depend on where that is, and whose height is the kernel. The error is relative, hence as small
    in the tails. So an entry is summed up once, in a table over the nodes of two features, and a
    state's mean takes two rows of exponentials and a product with that table.

    Args:
        references: scaled states [n_j, 2] of each entry.
        nodes: the grid's nodes along both features.
    """

    table: Tensor
    first: Tensor
    second: Tensor

    def __init__(self, references: Sequence[Tensor], nodes: tuple[Tensor, Tensor]) -> None:
        super().__init__()
        # Derived from the references, so not part of the state_dict.
        self.register_buffer("first", nodes[0], persistent=False)
        self.register_buffer("second", nodes[1], persistent=False)
        tables = [self._summed(states) for states in references]
        self.register_buffer("table", torch.stack(tables), persistent=False)

    @classmethod
    def fit(cls, references: Sequence[Tensor]) -> "KernelGrid | None":
        """Make a grid if it pays: ``None`` if there are fewer references than nodes make up for.

        Args:
            references: scaled states [n_j, 2] of each entry.
        """
        low = torch.stack([states.amin(0) for states in references]).amin(0) - _REACH
        high = torch.stack([states.amax(0) for states in references]).amax(0) + _REACH
        counts = ((high - low) / _SPACING).ceil().long() + 1
        nodes = math.prod(counts.tolist())
        states = sum(map(len, references)) / len(references)
        if nodes > min(_MOST_NODES, _CHEAPER * states):
            return None
        first, second = (
            start + _SPACING * torch.arange(count, dtype=torch.float64, device=low.device)
            for start, count in zip(low.double(), counts.tolist(), strict=True)
        )
        return cls(references, (first, second))

    def forward(self, states: Tensor) -> Tensor:
        """Return the means [N, J] for scaled states [N, 2].

        The products are in float64: those of the tails would be denormal in float32, on which some
        processors spend fourteen times as long as on all the rest.
        """
        table = self.table
        rows = max(1, _ELEMENTS // (len(table) * table.shape[2]))
        means = [
            torch.einsum("jnq,nq->nj", left.double() @ table, right.double())
            for left, right in map(self._factors, states.split(rows))
        ]
        return torch.cat(means).to(states.dtype)

    def _factors(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """Exponentials of the distances to the nodes along either feature, [N, p] and [N, q]."""
        first, second = (
            torch.exp2(-(column.unsqueeze(1) - nodes.to(states.dtype)).square().clamp(max=120))
            for column, nodes in zip(states.unbind(1), (self.first, self.second), strict=True)
        )
        return first, second

    def _summed(self, states: Tensor) -> Tensor:
        """One entry's table [p, q], so scaled that the products need no constant."""
        total = torch.zeros(len(self.first), len(self.second), dtype=torch.float64)
        total = total.to(self.first.device)
        for some in states.double().split(2**14):
            left, right = self._factors(some)
            total += left.T @ right
        # The lattice sum of 2^(-2 u^2) is its integral by the spacing, once for each feature.
        lattice_sum = math.sqrt(math.pi / (2 * math.log(2))) / _SPACING
        return total / len(states) / lattice_sum**2
