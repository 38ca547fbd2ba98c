"""From observations to features: encoding, concatenation, agent ids and hidden layers."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from tensordict import TensorDictBase
from tensordict.nn import TensorDictModule
from torch import nn

from sipo_trl.models.conv import ConvEncoder
from sipo_trl.models.description import Network, Observation, Scope
from sipo_trl.models.initialization import HIDDEN_GAIN, orthogonal
from sipo_trl.models.layers import ACTIVATIONS, Linear
from sipo_trl.models.observation_norm import ObservationNorm


class Trunk(nn.Module):
    """Encode and join observations, tell the agents apart, and pass hidden layers.

    All agents share the parameters; they are one more batch dimension.

    Args:
        observations: the inputs, in the order in which :meth:`forward` takes them.
        agents: number of agents, or ``None`` for a network without agent dimension.
        network: the shape of the network; its GRU is not part of the trunk.

    Attributes:
        layers: the hidden layers; a head may be appended to them.
        out_features: size of the features.

    Example:
        >>> own = Observation(key=("agents", "observation"), shape=[5], scope="agent")
        >>> state = Observation(key="state", shape=[7])
        >>> trunk = Trunk([own, state], agents=3, network=Network(hidden=[32]))
        >>> trunk(torch.zeros(4, 3, 5), torch.zeros(4, 7)).shape
        torch.Size([4, 3, 32])
    """

    agent_id: torch.Tensor

    def __init__(
        self, observations: Sequence[Observation], *, agents: int | None, network: Network
    ) -> None:
        super().__init__()
        if agents is None and any(observation.scope != "root" for observation in observations):
            raise ValueError(
                "An observation is described as one of several agents, but agents is None: give "
                "the number of agents, or the observation the scope 'root'."
            )
        self.agents = agents
        self.scopes: list[Scope] = [observation.scope for observation in observations]
        self.encoders = nn.ModuleList(
            ConvEncoder(observation.shape) if len(observation.shape) == 3 else nn.Identity()
            for observation in observations
        )
        size = 0
        for observation, encoder in zip(observations, self.encoders, strict=True):
            width = getattr(encoder, "out_features", observation.shape[-1])
            size += width * (agents or 1) if observation.scope == "joint" else width
        self.norm = _make_norm(network, size)
        identities = torch.eye(agents if agents and network.agent_id else 0)
        self.register_buffer("agent_id", identities, persistent=False)
        self.layers = nn.Sequential()
        size += len(identities)
        for width in network.hidden:
            self.layers.append(orthogonal(Linear(size, width), gain=HIDDEN_GAIN))
            self.layers.append(ACTIVATIONS[network.activation]())
            if network.layer_norm:
                self.layers.append(nn.LayerNorm(width))
            size = width
        self.out_features = size

    def forward(self, *observations: torch.Tensor) -> torch.Tensor:
        """Map observations, shaped by their scopes, to features ``[*, (A,) out_features]``."""
        # The ids follow the normalisation: their scale must not depend on the observation's.
        features = self.norm(self.join(*observations))
        if len(self.agent_id):
            agent_id = self.agent_id.expand(*features.shape[:-1], -1)
            features = torch.cat([features, agent_id], dim=-1)
        return self.layers(features)

    def join(self, *observations: torch.Tensor) -> torch.Tensor:
        """Encode observations and put them side by side, ``[*, (A,) F]``."""
        parts = [
            self._give_to_agents(encoder(observation), scope)
            for observation, encoder, scope in zip(
                observations, self.encoders, self.scopes, strict=True
            )
        ]
        return torch.cat(parts, dim=-1)

    @torch.no_grad()
    def update_norm(self, *observations: torch.Tensor) -> None:
        """Tell the observation norm, if there is one, what was seen."""
        if isinstance(self.norm, ObservationNorm):
            self.norm.update(self.join(*observations))

    def _give_to_agents(self, features: torch.Tensor, scope: Scope) -> torch.Tensor:
        """Shape one input ``[*, (A,) F]`` as each agent sees it, in the parameters' dtype."""
        features = features.to(self.agent_id.dtype)
        if self.agents is None or scope == "agent":
            return features
        if scope == "joint":
            features = features.flatten(-2)
        return features.unsqueeze(-2).expand(*features.shape[:-1], self.agents, -1)


def update_norms(network: nn.Module, batch: TensorDictBase) -> None:
    """Tell all observation norms of an actor or critic what a batch has shown.

    Args:
        network: what :func:`~sipo_trl.models.make_actor` or its like has made; left alone if it
            normalises nothing.
        batch: observations of any batch size.

    Example:
        >>> from torchrl.testing.mocking_classes import ContinuousActionVecMockEnv
        >>> from sipo_trl.models import make_actor
        >>> env = ContinuousActionVecMockEnv()
        >>> actor = make_actor(env, observation_norm=True)
        >>> update_norms(actor, env.rollout(5))
    """
    for module in network.modules():
        if isinstance(module, TensorDictModule) and isinstance(module.module, Trunk):
            module.module.update_norm(*(batch.get(key) for key in module.in_keys))


def _make_norm(network: Network, features: int) -> nn.Module:
    if network.observation_norm:
        return ObservationNorm(features)
    return nn.LayerNorm(features) if network.layer_norm else nn.Identity()
