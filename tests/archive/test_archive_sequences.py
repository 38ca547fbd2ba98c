"""Whatever happens to an archive, in whatever order, it holds what was appended."""

import shutil
from pathlib import Path

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from sipo_trl.archive import Archive, ArchiveError

from .helpers import odd_policy, random_tensor, same_bits


class ArchiveMachine(RuleBasedStateMachine):
    """Any sequence of appends, refusals, accidents and openings, against a list."""

    folder: Path

    def __init__(self):
        super().__init__()
        self.root = Path(self.folder) / str(id(self))
        self.archive = Archive.create(self.root)
        self.expected = []

    @rule(n=st.integers(1, 4), seed=st.integers(0, 99), with_policy=st.booleans())
    def append(self, n, seed, with_policy):
        states = random_tensor(torch.float32, (n, 2), seed)
        policy = odd_policy() if with_policy else None
        self.archive.append(states, metrics={"seed": seed}, policy=policy)
        self.expected.append((states, seed, policy))

    @rule()
    def append_nan(self):
        with pytest.raises(ArchiveError):
            self.archive.append(torch.tensor([[0.0, float("nan")]]))

    @rule()
    def append_in_another_process(self):
        Archive.open(self.root).append(torch.zeros(1, 2), metrics={"seed": -1})
        self.expected.append((torch.zeros(1, 2), -1, None))
        self.archive = Archive.open(self.root)

    @rule(name=st.sampled_from([".append", "next"]))
    def leave_something_behind(self, name):
        if name == "next":
            name = f"entries/{len(self.expected) + 1:04d}"
        (self.root / name).mkdir(exist_ok=True)
        (self.root / name / "entry.json").write_text("{")

    @rule(verify=st.booleans())
    def reopen(self, verify):
        self.archive = Archive.open(self.root, verify=verify)

    @invariant()
    def holds_what_was_appended(self):
        assert len(self.archive) == len(self.expected)
        for entry, (states, seed, policy) in zip(self.archive, self.expected, strict=True):
            assert same_bits(entry.states, states)
            assert entry.metrics == {"seed": seed}
            if policy is not None:
                assert same_bits(entry.load_policy().small, policy.small)

    def teardown(self):
        self.archive.verify()
        shutil.rmtree(self.root)


def test_any_sequence(tmp_path):
    class Machine(ArchiveMachine):
        folder = tmp_path

    Machine.TestCase.settings = settings(max_examples=10, stateful_step_count=10, deadline=None)
    Machine.TestCase().runTest()
