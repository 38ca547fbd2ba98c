"""Tensors on disk: written as memory-mapped TensorDicts, read by mapping checked records."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tensordict import TensorDict
from torch import Tensor

from sipo_trl.archive.error import ArchiveError

CHUNK_BYTES = 1 << 22

_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
_OTHERS = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
DTYPES = {str(dtype).removeprefix("torch."): dtype for dtype in (*_FLOATS, *_OTHERS)}


@dataclass(frozen=True)
class TensorRecord:
    """How to map a tensor: its file within the entry (``None`` if it has no elements) and form."""

    file: str | None
    dtype: torch.dtype
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """The number of bytes that the tensor takes on disk."""
        return math.prod(self.shape) * self.dtype.itemsize

    @classmethod
    def from_json(cls, document: Any) -> "TensorRecord":
        """Read a record; anything unexpected raises one of the ``MALFORMED`` errors."""
        shape = tuple(document["shape"])
        if not all(type(size) is int and 0 <= size < 2**63 for size in shape):
            raise ValueError(f"{document['shape']} is not a shape")
        return cls(document["file"], DTYPES[document["dtype"]], shape)

    def to_json(self) -> dict[str, Any]:
        """Return the record as plain JSON."""
        name = str(self.dtype).removeprefix("torch.")
        return {"file": self.file, "dtype": name, "shape": list(self.shape)}

    def map(self, folder: Path) -> Tensor:
        """Map the tensor into memory; writing to it changes this process's copy, not the file.

        ``TensorDict.load_memmap`` is of no use here: it maps files for writing, resolves the class
        that ``meta.json`` names, and takes its shapes on trust.
        """
        if self.file is None:
            return torch.empty(self.shape, dtype=self.dtype, device="cpu")
        flat = torch.from_file(
            str(folder / self.file),
            shared=False,
            size=math.prod(self.shape),
            dtype=self.dtype,
            device="cpu",
        )
        return flat.view(self.shape)


def write_tensors(
    folder: Path, tensors: Mapping[str, Tensor], *, batch_size: list[int]
) -> dict[str, TensorRecord]:
    """Write tensors as a memory-mapped TensorDict, piece by piece, and return their records.

    tensordict lays the files out; the content goes there by plain writes, because a full disk
    kills a process that writes through a mapping, and only fails one that calls ``write``.
    """
    forms = {
        name: torch.empty((), dtype=tensor.dtype, device="cpu").expand(tensor.shape)
        for name, tensor in tensors.items()
    }
    layout = TensorDict(forms, batch_size=batch_size).memmap_like(str(folder))
    records = {}
    for name, tensor in tensors.items():
        file = None
        if tensor.numel():
            path = Path(layout[name].filename)
            with path.open("r+b") as stream:
                for piece in pieces(tensor):
                    stream.write(piece.contiguous().flatten().view(torch.uint8).numpy().data)
            file = f"{folder.name}/{path.name}"
        records[name] = TensorRecord(file, tensor.dtype, tuple(tensor.shape))
    return records


def pieces(tensor: Tensor) -> Iterator[Tensor]:
    """Yield a tensor [n, ...] in pieces [m, ...] of a few megabytes, on the CPU."""
    tensor = tensor.detach().reshape(1) if tensor.ndim == 0 else tensor.detach()
    rows = max(1, CHUNK_BYTES * len(tensor) // tensor.nbytes)
    for piece in tensor.split(rows):
        yield piece.cpu()


def check_finite(states: Tensor) -> None:
    """Raise if a state holds NaN or infinity, which every distance to it would become."""
    row = 0
    for piece in pieces(states):
        finite = piece.isfinite().reshape(len(piece), -1).all(1)
        if not finite.all():
            row += int(finite.logical_not().nonzero()[0])
            raise ArchiveError(
                f"The states hold NaN or infinity (first in row {row}): remove such rows, and "
                "find out where they come from, before appending."
            )
        row += len(piece)


def mean_and_std(states: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and population standard deviation [*F] of states [n, *F], as float32.

    One pass in float64; pieces are merged with the pairwise formula of Chan et al. (1979), which
    does not cancel.
    """
    count = 0
    mean = torch.zeros(states.shape[1:], dtype=torch.float64)
    squares = torch.zeros_like(mean)
    for piece in pieces(states):
        variance, piece_mean = torch.var_mean(piece.double(), dim=0, correction=0)
        share = len(piece) / (count + len(piece))
        shift = piece_mean - mean
        squares += len(piece) * variance + shift.square() * count * share
        mean += shift * share
        count += len(piece)
    mean, std = mean.float(), (squares / count).sqrt().float()
    if not (mean.isfinite().all() and std.isfinite().all()):
        raise ArchiveError(
            "The states are too large for their mean and standard deviation to be float32 "
            "numbers: scale them before appending."
        )
    return mean, std
