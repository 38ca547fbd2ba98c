"""One archived policy."""

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from tensordict import TensorDict
from torch import Tensor, nn

from sipo_trl.archive._document import DOCUMENT, Document
from sipo_trl.archive._files import REMEDY, FileRecord, check_content, check_size
from sipo_trl.archive._policy import rebuild_policy
from sipo_trl.archive._tensors import TensorRecord
from sipo_trl.archive.error import ArchiveError


class Entry:
    """What one finished policy left behind: its states, its weights and its figures.

    An :class:`Archive` hands entries out; nothing is read before it is asked for. Tensors are
    mapped into memory: they take none until they are used, and writing to them changes this
    process's view but never the archive.

    Args:
        path: the folder of the entry.
        files: what the archive's manifest says about each file in it.
        verify: whether a file's SHA-256 is checked before the file is first used.

    Example:
        >>> import tempfile, torch
        >>> from sipo_trl.archive import Archive
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     archive = Archive.create(folder)
        ...     entry = archive.append(torch.zeros(3, 2), metrics={"return": 1.5})
        ...     entry.name, entry.states.shape, entry.metrics
        ('0001', torch.Size([3, 2]), {'return': 1.5})
    """

    def __init__(self, path: Path, files: Mapping[str, FileRecord], *, verify: bool) -> None:
        self.path = path
        self.files = files
        self._verify = verify

    @property
    def name(self) -> str:
        """The name of the entry: its place in the archive, counted from 1, in four digits."""
        return self.path.name

    @cached_property
    def document(self) -> Document:
        """The content of ``entry.json``, checked."""
        self._check(DOCUMENT)
        return Document.read(self.path, self.files)

    @property
    def metrics(self) -> dict[str, Any]:
        """The policy's evaluation figures."""
        return self.document.metrics

    @property
    def config(self) -> dict[str, Any]:
        """The configuration that made the policy."""
        return self.document.config

    @cached_property
    def states(self) -> Tensor:
        """The states [n, *F] that the policy visited."""
        return self._map(self.document.columns["states"])

    @cached_property
    def data(self) -> TensorDict:
        """Every column, as a locked TensorDict [n]: ``states`` and what was appended with them."""
        columns = {
            name: self.states if name == "states" else self._map(record)
            for name, record in self.document.columns.items()
        }
        return TensorDict(columns, batch_size=self.states.shape[:1]).lock_()

    @cached_property
    def final_states(self) -> Tensor:
        """The last state of each episode [episodes, *F], in the order of the ``episode`` column."""
        step, episode = self._index_column("step"), self._index_column("episode")
        order = step.argsort(stable=True)
        order = order[episode[order].argsort(stable=True)]
        episode = episode[order]
        is_last = torch.ones_like(episode, dtype=torch.bool)
        is_last[:-1] = episode[1:] != episode[:-1]
        return self.states[order[is_last]]

    def load_policy(self) -> nn.Module:
        """Rebuild the policy with its very weights, on the CPU and in evaluation mode.

        Its recipe is looked up in :mod:`sipo_trl.registry`: builders of your own must be registered
        before.

        Example:
            >>> import tempfile, torch
            >>> from sipo_trl.archive import Archive
            >>> from sipo_trl.registry import build_policy, register_policy
            >>> register_policy("linear", torch.nn.Linear)
            >>> spec = {"builder": "linear", "kwargs": {"in_features": 2, "out_features": 1}}
            >>> policy = build_policy(spec)
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     entry = Archive.create(folder).append(torch.zeros(3, 2), policy=policy)
            ...     bool((entry.load_policy().weight == policy.weight).all())
            True
        """
        spec = self.document.policy_spec
        if spec is None:
            raise ArchiveError(
                f"{self.path}: this entry has no policy: give append(..., policy=module) one."
            )
        weights = {name: self._map(record) for name, record in self.document.weights.items()}
        try:
            return rebuild_policy(spec, weights)
        except (TypeError, ValueError, RuntimeError) as error:
            raise ArchiveError(
                f"{self.path / DOCUMENT}: the policy cannot be rebuilt: {error}"
            ) from error

    def verify(self) -> None:
        """Read every file of the entry and check its SHA-256."""
        for name, record in self.files.items():
            check_content(self.path / name, record)
        Document.read(self.path, self.files)

    def _index_column(self, name: str) -> Tensor:
        if name not in self.document.columns:
            raise ArchiveError(
                f"{self.path}: final states need the columns 'step' and 'episode', and there is "
                f"no {name!r}: append it along with the states."
            )
        column = self.data[name].flatten()
        if len(column) != len(self.states):
            raise ArchiveError(
                f"{self.path}: final states need one {name!r} per state, got the shape "
                f"{list(self.data[name].shape)}."
            )
        return column

    def _map(self, record: TensorRecord) -> Tensor:
        if record.file is not None:
            self._check(record.file)
        try:
            return record.map(self.path)
        except RuntimeError as error:
            raise ArchiveError(
                f"{self.path / DOCUMENT}: a tensor cannot be mapped ({error}). {REMEDY}"
            ) from error

    def _check(self, name: str) -> None:
        check = check_content if self._verify else check_size
        check(self.path / name, self.files[name])
