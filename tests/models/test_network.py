from __future__ import annotations

import pytest
import torch
from tensordict import TensorDict
from torch import nn

from sipo_trl.models import Network, Observation
from sipo_trl.models.network import build_network


def make(gru: int | None, *, layer_norm: bool = False):
    return build_network(
        name="critic",
        observations=[Observation(key=("agents", "observation"), shape=[5], scope="agent")],
        agents=3,
        group=("agents",),
        network=Network(hidden=[16], gru=gru, layer_norm=layer_norm),
        head=lambda features: nn.Linear(features, 2),
        out_keys=[("agents", "state_value")],
    )


def data() -> TensorDict:
    agents = TensorDict(
        observation=torch.randn(4, 3, 5), critic_hidden=torch.zeros(4, 3, 8), batch_size=[4, 3]
    )
    return TensorDict(agents=agents, is_init=torch.zeros(4, 1).bool(), batch_size=[4])


@pytest.mark.parametrize("gru", [None, 8])
def test_writes_nothing_but_its_outputs(gru):
    before, after = data(), make(gru)(data())
    new = set(after.keys(True, True)) - set(before.keys(True, True))
    memory = {("next", "agents", "critic_hidden")} if gru else set()
    assert new == {("agents", "state_value")} | memory


def test_the_gru_output_is_normalised():
    network = make(8, layer_norm=True)
    out = network(data())
    head = [layer for layer in network.modules() if isinstance(layer, nn.Linear)][-1]
    normal = nn.functional.layer_norm(out["next", "agents", "critic_hidden"], [8])
    torch.testing.assert_close(out["agents", "state_value"], head(normal))
