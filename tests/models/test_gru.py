from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tensordict import TensorDict
from torch import nn
from torchrl.modules import set_recurrent_mode

from sipo_trl.models import MaskedGRU

INPUT, HIDDEN = 5, 7


def make_gru(agents: int | None = None, **options) -> MaskedGRU:
    gru = MaskedGRU(INPUT, HIDDEN, in_key="x", out_key="y", agents=agents, **options).double()
    # Zero biases would hide mistakes in their use.
    nn.init.normal_(gru.cell.bias_ih)
    nn.init.normal_(gru.cell.bias_hh)
    return gru


def make_data(*batch: int, agents: int | None = None, resets: float = 0.0) -> TensorDict:
    team = () if agents is None else (agents,)
    return TensorDict(
        x=torch.randn(*batch, *team, INPUT, dtype=torch.float64),
        recurrent_state=torch.randn(*batch, *team, HIDDEN, dtype=torch.float64),
        is_init=torch.rand(*batch, 1) < resets,
        batch_size=batch,
    )


def run(gru: MaskedGRU, data: TensorDict) -> torch.Tensor:
    with set_recurrent_mode(True):
        return gru(data.copy())["y"]


def test_equals_torch_without_resets():
    gru, data = make_gru(), make_data(4, 6)
    reference = nn.GRU(INPUT, HIDDEN, batch_first=True).double()
    reference.load_state_dict({f"{k}_l0": v for k, v in gru.cell.state_dict().items()})
    expected, _ = reference(data["x"], data["recurrent_state"][None, :, 0].contiguous())
    torch.testing.assert_close(run(gru, data), expected)


def test_gradients_equal_torch_without_resets():
    gru, data = make_gru(), make_data(4, 6)
    reference = nn.GRU(INPUT, HIDDEN, batch_first=True).double()
    reference.load_state_dict({f"{k}_l0": v for k, v in gru.cell.state_dict().items()})
    expected, _ = reference(data["x"], data["recurrent_state"][None, :, 0].contiguous())
    weights = torch.randn_like(expected)
    (run(gru, data) * weights).sum().backward()
    (expected * weights).sum().backward()
    for ours, theirs in zip(gru.parameters(), reference.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad)


def test_equals_running_each_episode_by_itself():
    gru, data = make_gru(), make_data(1, 12)
    starts = [0, 3, 4, 9, 12]
    data["is_init"][0, starts[:-1]] = True
    data["recurrent_state"] = torch.randn_like(data["recurrent_state"])
    episodes = []
    for start, end in pairwise(starts):
        episode = data[:, start:end].clone()
        episode["recurrent_state"].zero_()
        episode["is_init"].zero_()
        episodes.append(run(gru, episode))
    torch.testing.assert_close(run(gru, data), torch.cat(episodes, dim=1))


@given(
    batch=st.lists(st.integers(1, 3), max_size=2),
    steps=st.integers(1, 6),
    agents=st.none() | st.integers(1, 3),
    seed=st.integers(0, 2**16),
)
@settings(max_examples=50, deadline=None)
def test_sequence_mode_equals_step_mode(batch, steps, agents, seed):
    torch.manual_seed(seed)
    gru, data = make_gru(agents), make_data(*batch, steps, agents=agents, resets=0.3)
    with set_recurrent_mode(True):
        whole = gru(data.copy())
    hidden = data["recurrent_state"].select(len(batch), 0)
    for step in range(steps):
        now = data.select("x", "is_init")[(slice(None),) * len(batch) + (step,)].copy()
        now = gru(now.set("recurrent_state", hidden))
        hidden = now["next", "recurrent_state"]
        torch.testing.assert_close(now["y"], whole["y"].select(len(batch), step))
        torch.testing.assert_close(
            hidden, whole["next", "recurrent_state"].select(len(batch), step)
        )


@pytest.mark.parametrize("recurrent", [False, True])
def test_agents_equal_looping_over_single_agents(recurrent):
    team, alone = make_gru(agents=3), make_gru()
    alone.load_state_dict(team.state_dict())
    data = make_data(4, 6, agents=3, resets=0.3)
    with set_recurrent_mode(recurrent):
        together = team(data.copy())["y"]
        for agent in range(3):
            one = data.copy()
            one.update({key: data[key][:, :, agent] for key in ("x", "recurrent_state")})
            torch.testing.assert_close(together[:, :, agent], alone(one)["y"])


def test_agents_may_start_by_themselves():
    gru, data = make_gru(agents=3), make_data(4, 6, agents=3)
    cleared = torch.rand(4, 6, 3, 1) < 0.3
    by_mask = gru(data.copy().set("is_init", cleared))["y"]
    by_hand = gru(data.copy().set("recurrent_state", data["recurrent_state"] * ~cleared))["y"]
    torch.testing.assert_close(by_mask, by_hand)


def test_only_the_stored_first_state_is_used():
    gru, data = make_gru(), make_data(4, 6)
    other = data.clone()
    other["recurrent_state"][:, 1:] = torch.nan
    torch.testing.assert_close(run(gru, data), run(gru, other))


def test_no_gradient_passes_a_reset():
    gru, data = make_gru(), make_data(1, 6)
    data["is_init"][0, 3] = True
    data["x"].requires_grad_()
    run(gru, data)[:, 3:].sum().backward()
    assert not data["x"].grad[0, :3].any()
    assert data["x"].grad[0, 3:].all()


def test_initial_weights():
    gru = MaskedGRU(64, 64, in_key="x", out_key="y")
    for weight in (gru.cell.weight_ih, gru.cell.weight_hh):
        torch.testing.assert_close(weight.T @ weight, torch.eye(64))
    assert not gru.cell.bias_ih.any()
    assert not gru.cell.bias_hh.any()


@pytest.mark.parametrize("recurrent", [False, True])
@pytest.mark.parametrize("agents", [None, 3])
def test_meta_tensors(agents, recurrent):
    gru, data = make_gru(agents).to("meta"), make_data(4, 6, agents=agents).to("meta")
    with set_recurrent_mode(recurrent):
        assert gru(data)["next", "recurrent_state"].shape == data["recurrent_state"].shape


def test_primer_shapes():
    gru = make_gru(agents=3, hidden_key=("agents", "memory"))
    primers = gru.make_tensordict_primer().primers
    assert primers["agents"].shape == (3,)
    assert primers["agents", "memory"].shape == (3, HIDDEN)
    assert primers["agents", "memory"].dtype == torch.float64


@pytest.mark.parametrize("key", ["recurrent_state", "is_init"])
def test_missing_entries_say_what_to_append(key):
    with pytest.raises(KeyError, match=f"{key}.*get_env_transforms_from_module"):
        make_gru()(make_data(4).exclude(key))
