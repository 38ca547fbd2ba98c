"""The policies of a run or archive, checked, with the columns that metrics are made of.

Beside ``states`` [n, *F] an entry may have these columns, one row per visited state; a metric that
needs one of them says so where it is missing:

- ``episode`` [n], ``step`` [n]: which episode, and which step of it;
- ``success`` [n], ``return`` [n]: the episode's;
- ``landmark`` [n, 1]: the landmark that is touched, or -1 (navigation);
- ``torque`` [n, D]: joint torques, ``foot_sensors`` [n, 12] (humanoid);
- ``position`` [n, A, 2]: where the controlled agents are, ``alive`` [n, A]: which of them live;
- ``enemy_position`` [n, E, 2], ``enemy_alive`` [n, E]: the same of whom they fight (SMAC);
- ``ball`` [n, 2] or [n, 3]: where the ball is (football).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from tensordict import TensorDict
from torch import Tensor

from evaluation.distances import KERNEL_VARIANCE
from sipo_trl.archive import Archive, ArchiveError


class InputError(RuntimeError):
    """Something that a user can mend: one sentence, no traceback needed."""


@dataclass(frozen=True)
class Policy:
    """A policy's states and figures.

    Attributes:
        name: of the archive's entry, such as ``0001``.
        data: the columns [n].
        metrics: its evaluation figures.
        config: the configuration that made it.
        path: where the entry is, for messages.
    """

    name: str
    data: TensorDict
    metrics: dict[str, Any]
    config: dict[str, Any]
    path: Path

    @property
    def states(self) -> Tensor:
        """The visited states [n, *F]."""
        return self.data["states"]

    def has(self, name: str) -> bool:
        """Whether there is such a column."""
        return name in self.data.keys()

    def column(self, name: str) -> Tensor:
        """A column [n, ...], or a sentence that says that it is missing."""
        if not self.has(name):
            raise InputError(
                f"{self.path}: there is no column {name!r}, which this needs: archive it along "
                "with the states, or roll the policies out again with --episodes."
            )
        return self.data[name]

    @cached_property
    def episodes(self) -> list[Tensor]:
        """The rows of each episode, in the order of steps; all rows if episodes are not known."""
        if not self.has("episode"):
            return [torch.arange(len(self.states))]
        episode = self.column("episode").flatten()
        order = torch.arange(len(episode))
        if self.has("step"):
            order = self.column("step").flatten().argsort(stable=True)
        order = order[episode[order].argsort(stable=True)]
        _, counts = episode.unique(return_counts=True)
        return list(order.split(counts.tolist()))

    @property
    def final_states(self) -> Tensor | None:
        """The last state of each episode [E, *F], if episodes are known."""
        if not (self.has("episode") and self.has("step")):
            return None
        return self.states[torch.stack([rows[-1] for rows in self.episodes])]

    @property
    def won(self) -> Tensor | None:
        """Which rows [n] belong to won episodes; ``None`` if that is not known."""
        return self.column("success").flatten().bool() if self.has("success") else None

    @property
    def won_episodes(self) -> list[Tensor]:
        """The rows of each won episode; of every one if success is not known."""
        won = self.won
        return [rows for rows in self.episodes if won is None or bool(won[rows[-1]])]

    @property
    def success_rate(self) -> float | None:
        """Share of won episodes, or what the entry says of it."""
        if self.won is None:
            return self.metrics.get("success")
        return len(self.won_episodes) / len(self.episodes)

    @property
    def returns(self) -> Tensor:
        """The return of each episode [E], in double precision."""
        returns = self.column("return").flatten().double()
        return torch.stack([returns[rows[-1]] for rows in self.episodes])

    @property
    def mean_return(self) -> float | None:
        """Mean return of the episodes, or what the entry says of it."""
        return self.returns.mean().item() if self.has("return") else self.metrics.get("return")


@dataclass(frozen=True)
class Population:
    """The policies of one archive.

    Attributes:
        name: what the user called it.
        archive: where they come from.
        policies: at least one.
        origin: which episodes these are, in words.
    """

    name: str
    archive: Archive
    policies: tuple[Policy, ...]
    origin: str = "stored episodes"

    def __iter__(self) -> Iterator[Policy]:
        return iter(self.policies)

    def __len__(self) -> int:
        return len(self.policies)

    @property
    def env(self) -> str | None:
        """The name of the environment, if the archive tells."""
        settings = self.policies[0].config.get("env")
        return settings.get("name") if isinstance(settings, dict) else None

    @property
    def kernel_variance(self) -> float:
        """The width of the RBF kernel that the run had or would have had, if the archive tells."""
        config = self.policies[0].config
        measure, env = config.get("measure"), config.get("env")
        if isinstance(measure, dict) and measure.get("name") == "rbf":
            scale: Any = measure
        else:
            scale = env.get("rbf") if isinstance(env, dict) else None
        variance = scale.get("variance") if isinstance(scale, dict) else None
        if isinstance(variance, int | float) and 0 < variance < math.inf:
            return float(variance)
        return KERNEL_VARIANCE

    @property
    def run(self) -> Path | None:
        """The run folder around the archive, if there is one."""
        folder = self.archive.path.parent
        return folder if (folder / "config.yaml").is_file() else None


def open_archive(path: Path) -> Archive:
    """The archive of a run folder, or the archive itself; it holds at least one policy."""
    inner = path / "archive"
    archive = Archive.open(inner if inner.is_dir() else path)
    if not len(archive):
        raise InputError(f"{path}: the archive is empty: let a policy finish first.")
    return archive


def load_population(path: str | Path) -> Population:
    """Read all policies of a run folder or archive, and check their states.

    Args:
        path: the folder; nothing is written to it.

    Examples:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     archive = Archive.create(folder)
        ...     _ = archive.append(torch.zeros(6, 2), episode=torch.tensor([0, 0, 0, 1, 1, 1]))
        ...     (policy,) = load_population(folder)
        ...     policy.name, [len(rows) for rows in policy.episodes]
        ('0001', [3, 3])
    """
    archive = open_archive(Path(path))
    policies = tuple(
        Policy(entry.name, entry.data, entry.metrics, entry.config, entry.path) for entry in archive
    )
    check_policies(policies)
    return Population(str(path), archive, policies)


def join_populations(populations: Sequence[Population]) -> Population:
    """Take the policies of several archives for one population.

    Its archive is the first one's, so that whoever wants new episodes plays them beforehand.

    Args:
        populations: at least one, whose states can be compared.

    Examples:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for name in ("a", "b"):
        ...         _ = Archive.create(f"{folder}/{name}").append(torch.zeros(6, 2))
        ...     both = join_populations([load_population(f"{folder}/{name}") for name in "ab"])
        ...     both.name.removeprefix(folder), [policy.name for policy in both]
        ('/a,b', ['a/0001', 'b/0001'])
    """
    paths = [Path(population.name) for population in populations]
    folder = paths[0].parent
    in_one_folder = all(path.parent == folder for path in paths)
    ends = [path.name if in_one_folder else str(path) for path in paths]
    policies = tuple(
        replace(policy, name=f"{end}/{policy.name}")
        for end, population in zip(ends, populations, strict=True)
        for policy in population
    )
    check_policies(policies)
    joined = ",".join(ends)
    name = str(folder / joined) if in_one_folder else joined
    return replace(populations[0], name=name, policies=policies)


def check_policies(policies: tuple[Policy, ...]) -> None:
    """Refuse states that are no numbers, or not of one form."""
    first = policies[0].states
    for policy in policies:
        states = policy.states
        if states.shape[1:] != first.shape[1:]:
            raise ArchiveError(
                f"{policy.path}: its states have the shape {list(states.shape[1:])}, those of "
                f"{policies[0].name} {list(first.shape[1:])}: they cannot be compared."
            )
        if states.is_floating_point() and not states.isfinite().all():
            row = int((~states.flatten(1).isfinite().all(1)).nonzero()[0])
            raise ArchiveError(
                f"{policy.path}: state {row} is not finite: leave out what made it and archive "
                "the policy again."
            )
