"""States and columns that cannot be archived are refused before anything is written."""

import numpy as np
import pytest
import torch
from tensordict import TensorDict

from sipo_trl.archive import Archive, ArchiveError, _tensors

from .helpers import listing

NAN, INF = float("nan"), float("inf")


@pytest.fixture
def refuses(tmp_path):
    archive = Archive.create(tmp_path / "archive")
    before = listing(archive.path)

    def check(message, *args, **kwargs):
        with pytest.raises(ArchiveError, match=message):
            archive.append(*args, **kwargs)
        assert listing(archive.path) == before

    return check


@pytest.mark.parametrize("states", [np.zeros((2, 2)), [[1.0]], None, TensorDict({}, [2])])
def test_not_a_tensor(refuses, states):
    refuses(r"The states must be a tensor \[n, \*F\]", states)


@pytest.mark.parametrize("shape", [(0, 3), (2, 0), ()])
def test_no_states(refuses, shape):
    refuses("There are no states to append", torch.zeros(shape))


@pytest.mark.parametrize("bad", [NAN, INF, -INF])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_not_finite(refuses, monkeypatch, bad, dtype):
    monkeypatch.setattr(_tensors, "CHUNK_BYTES", 64)
    states = torch.zeros(100, 2, 2, dtype=dtype)
    states[77, 1, 0] = states[80] = bad
    refuses(r"NaN or infinity \(first in row 77\)", states)


def test_batch_of_trajectories(refuses):
    data = TensorDict({"states": torch.zeros(2, 3, 1)}, [2, 3])
    refuses(r"one batch dimension, \[n\], not \[2, 3\]: flatten", data)


@pytest.mark.parametrize("shape", [(3,), (1, 2), ()])
def test_column_of_another_length(refuses, shape):
    refuses("'step' must have a row for each of the 2", torch.zeros(2, 1), step=torch.zeros(shape))


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (TensorDict({"a": torch.zeros(2)}, [2]), "TensorDict"),
        ("text", "str"),
        (torch.zeros(2, dtype=torch.complex64), "torch.complex64"),
    ],
)
def test_column_of_another_kind(refuses, column, kind):
    refuses(f"'extra' must be a tensor of .*, not {kind}", torch.zeros(2, 1), extra=column)
