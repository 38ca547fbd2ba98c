"""An entry gives its tensors, figures and policy, as they are asked for."""

import gc
import os
from pathlib import Path

import pytest
import torch

from sipo_trl.archive import Archive, ArchiveError

from .helpers import odd_policy, same_bits


@pytest.fixture
def archive(tmp_path):
    return Archive.create(tmp_path / "archive")


class TestTensors:
    def test_shapes(self, archive):
        entry = archive.append(torch.randn(6, 3), torque=torch.randn(6, 21), empty=torch.ones(6, 0))
        assert entry.states.shape == (6, 3)
        assert entry.data.batch_size == (6,)
        assert entry.data["torque"].shape == (6, 21)
        assert entry.data["empty"].shape == (6, 0)
        assert entry.data["states"] is entry.states

    def test_writing_to_them_leaves_the_archive_alone(self, archive):
        entry = archive.append(torch.zeros(3, 2))
        entry.states.fill_(7)
        archive.verify()
        assert Archive.open(archive.path)[0].states.sum() == 0

    def test_columns_cannot_be_added(self, archive):
        entry = archive.append(torch.zeros(3, 2))
        with pytest.raises(RuntimeError, match="lock"):
            entry.data["more"] = torch.zeros(3)

    def test_checked_before_first_use(self, archive):
        entry = archive.append(torch.zeros(3, 2), step=torch.arange(3), metrics={"a": 1})
        path = entry.path / "states" / "step.memmap"
        path.write_bytes(bytes(24))
        opened = Archive.open(archive.path)[0]
        assert opened.states.sum() == 0
        assert opened.metrics == {"a": 1}
        with pytest.raises(ArchiveError, match=rf"^{path}: damaged: its SHA-256"):
            opened.data  # noqa: B018

    def test_many_entries_leave_no_files_open(self, archive):
        for _ in range(5):
            archive.append(torch.zeros(3, 2), step=torch.arange(3))
        gc.collect()
        before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
        tensors = [entry.data for entry in Archive.open(archive.path)]
        assert len(tensors) == 5
        assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208

    def test_vanished_after_opening(self, archive):
        first, second = (archive.append(torch.zeros(3, 2)) for _ in range(2))
        opened = Archive.open(archive.path, verify=False)
        os.truncate(first.path / "states" / "states.memmap", 4)
        with pytest.raises(ArchiveError, match=r"states\.memmap: truncated or changed: 4 bytes"):
            opened[0].states  # noqa: B018
        (second.path / "entry.json").unlink()
        with pytest.raises(ArchiveError, match=r"entry\.json: cannot be read"):
            opened[1].metrics  # noqa: B018

    def test_turned_into_a_link_after_opening(self, archive, tmp_path):
        entry = archive.append(torch.zeros(3, 2))
        opened = Archive.open(archive.path)
        path = entry.path / "states" / "states.memmap"
        path.rename(tmp_path / "elsewhere")
        path.symlink_to(tmp_path / "elsewhere")
        with pytest.raises(ArchiveError, match=r"states\.memmap: not a regular file"):
            opened[0].states  # noqa: B018


class TestFinalStates:
    def test_last_step_of_each_episode_in_any_order(self, archive):
        episode = torch.tensor([7, 2, 7, 2, 7, 5])
        step = torch.tensor([1, 0, 2, 3, 0, 9])
        states = torch.arange(6.0)[:, None].expand(6, 2)
        entry = archive.append(states, episode=episode, step=step)
        assert entry.final_states.tolist() == [[3, 3], [5, 5], [2, 2]]

    def test_against_a_loop(self, archive):
        generator = torch.Generator().manual_seed(0)
        episode = torch.randint(0, 20, (300, 1), generator=generator)
        step = torch.randperm(300, generator=generator)[:, None]
        states = torch.randn(300, 2, generator=generator)
        last = {}
        for row in step.flatten().argsort().tolist():
            last[int(episode[row])] = states[row]
        entry = archive.append(states, episode=episode, step=step)
        assert entry.final_states.equal(torch.stack([last[key] for key in sorted(last)]))

    @pytest.mark.parametrize("missing", ["step", "episode"])
    def test_needs_both_columns(self, archive, missing):
        columns = {"step": torch.zeros(2), "episode": torch.zeros(2)}
        del columns[missing]
        entry = archive.append(torch.zeros(2, 1), **columns)
        with pytest.raises(ArchiveError, match=f"there is no '{missing}': append it"):
            entry.final_states  # noqa: B018

    def test_needs_one_number_per_state(self, archive):
        entry = archive.append(torch.zeros(2, 1), step=torch.zeros(2, 3), episode=torch.zeros(2))
        with pytest.raises(ArchiveError, match=r"one 'step' per state, got the shape \[2, 3\]"):
            entry.final_states  # noqa: B018


class TestPolicy:
    def test_same_bits(self, archive):
        policy = odd_policy(width=4).train()
        archive.append(torch.zeros(1, 1), policy=policy)
        loaded = Archive.open(archive.path)[0].load_policy()
        expected, found = policy.state_dict(), loaded.state_dict()
        assert list(expected) == list(found)
        assert all(same_bits(expected[name], found[name]) for name in expected)

    def test_ready_for_evaluation_and_to_be_appended_again(self, archive):
        loaded = archive.append(torch.zeros(1, 1), policy=odd_policy()).load_policy()
        assert not any(module.training for module in loaded.modules())
        assert loaded.tied.weight is loaded.net[0].weight
        again = archive.append(torch.zeros(1, 1), policy=loaded).load_policy()
        assert again.net[0].weight.equal(loaded.net[0].weight)

    def test_does_not_depend_on_the_archive_once_loaded(self, archive):
        loaded = archive.append(torch.zeros(1, 1), policy=odd_policy()).load_policy()
        loaded.scale.data.fill_(3)
        assert archive[0].load_policy().scale != 3
        archive.verify()

    def test_leaves_the_random_numbers_alone(self, archive):
        policy = odd_policy()
        torch.manual_seed(0)
        expected = torch.rand(3)
        torch.manual_seed(0)
        archive.append(torch.zeros(1, 1), policy=policy).load_policy()
        assert torch.rand(3).equal(expected)

    def test_none_there(self, archive):
        entry = archive.append(torch.zeros(1, 1))
        with pytest.raises(ArchiveError, match="0001: this entry has no policy"):
            entry.load_policy()

    def test_damaged_weight(self, archive):
        entry = archive.append(torch.zeros(1, 1), policy=odd_policy())
        path = Path(entry.path / "policy" / "mask.memmap")
        path.write_bytes(bytes(2) + b"\x02")
        with pytest.raises(ArchiveError, match=r"mask\.memmap: damaged"):
            Archive.open(archive.path)[0].load_policy()
