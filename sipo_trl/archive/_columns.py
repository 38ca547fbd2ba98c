"""The columns of an entry, as the user gives them."""

from collections.abc import Mapping

from tensordict import TensorDictBase
from torch import Tensor

from sipo_trl.archive._tensors import DTYPES, check_finite
from sipo_trl.archive.error import ArchiveError


def collect_columns(
    states: Tensor | TensorDictBase, columns: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """Return all columns by name, ``states`` among them, once they are known to fit together."""
    if isinstance(states, TensorDictBase):
        if states.batch_dims != 1:
            raise ArchiveError(
                f"The states must have one batch dimension, [n], not {list(states.batch_size)}: "
                "flatten them with .reshape(-1)."
            )
        data = {**dict(states.items()), **columns}
    else:
        data = {"states": states, **columns}
    _check_states(data.get("states"))
    for name, column in data.items():
        _check_column(name, column, len(data["states"]))
    check_finite(data["states"])
    return data


def _check_states(states: object) -> None:
    if not isinstance(states, Tensor):
        raise ArchiveError(
            "The states must be a tensor [n, *F], or a TensorDict [n] with a tensor 'states', not "
            f"a {type(states).__name__}."
        )
    if states.numel() == 0 or states.ndim == 0:
        raise ArchiveError(
            f"There are no states to append (their shape is {list(states.shape)}): give at least "
            "one row [n, *F]."
        )


def _check_column(name: str, column: object, length: int) -> None:
    if not isinstance(column, Tensor) or column.dtype not in DTYPES.values():
        kind = column.dtype if isinstance(column, Tensor) else type(column).__name__
        raise ArchiveError(
            f"The column {name!r} must be a tensor of {', '.join(DTYPES)}, not {kind}: convert it "
            "or leave it out."
        )
    if column.shape[:1] != (length,):
        raise ArchiveError(
            f"The column {name!r} must have a row for each of the {length} states, but its shape "
            f"is {list(column.shape)}."
        )
