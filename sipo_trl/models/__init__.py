"""Actors and multi-head critics built from environment specs.

- :func:`make_actor`, :func:`make_critic`: networks for an environment, in one call;
- :func:`actor_spec`, :func:`critic_spec`: their descriptions, as plain data that JSON can hold;
- :func:`build_actor`, :func:`build_critic`: networks from descriptions;
- :class:`Observation`, :class:`Action`, :class:`Network`: what descriptions are made of;
- :class:`Actor`: a policy that carries its description;
- :class:`MaskedGRU`: memory with resets, for any number of agents;
- :class:`ObservationNorm`, :func:`update_norms`: observations in units of their deviation;
- :class:`ConvEncoder`: image features, shared with the Wasserstein critic;
- :class:`BoundedTanhNormal`, :class:`OneHotChoice`, :class:`MaskedOneHotChoice`: distributions;
- :func:`plain_layers`, :func:`plain_weights`: a policy as plain numbers, for workers without torch;
- :func:`orthogonal`: the initialisation of them all.
"""

from sipo_trl.models.actor import Actor, actor_spec, build_actor, make_actor
from sipo_trl.models.conv import ConvEncoder
from sipo_trl.models.critic import build_critic, critic_spec, make_critic
from sipo_trl.models.description import Action, Network, Observation
from sipo_trl.models.distribution import BoundedTanhNormal, MaskedOneHotChoice, OneHotChoice
from sipo_trl.models.gru import MaskedGRU
from sipo_trl.models.initialization import orthogonal
from sipo_trl.models.observation_norm import ObservationNorm
from sipo_trl.models.plain import plain_layers, plain_weights
from sipo_trl.models.trunk import update_norms

__all__ = [
    "Action",
    "Actor",
    "BoundedTanhNormal",
    "ConvEncoder",
    "MaskedGRU",
    "MaskedOneHotChoice",
    "Network",
    "Observation",
    "ObservationNorm",
    "OneHotChoice",
    "actor_spec",
    "build_actor",
    "build_critic",
    "critic_spec",
    "make_actor",
    "make_critic",
    "orthogonal",
    "plain_layers",
    "plain_weights",
    "update_norms",
]
