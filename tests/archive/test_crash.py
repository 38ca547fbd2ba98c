"""Whatever happens to a writer, an archive holds its complete entries and takes the next one."""

import fcntl
import os
import subprocess
from pathlib import Path
from unittest import mock

import pytest
import torch

from sipo_trl.archive import Archive, ArchiveError

from . import scenarios
from .helpers import listing, odd_policy

# Inside it, anybody may mount.
NAMESPACE = ["unshare", "--map-root-user", "--mount"]


@pytest.fixture(autouse=True)
def _fsync():
    """Here fsync is the real one."""


@pytest.fixture(scope="module")
def findings(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scenarios")
    played = [
        scenarios.two_million_states,
        scenarios.killed_at_every_step,
        scenarios.refused_at_every_step,
        scenarios.killed_at_any_moment,
        scenarios.several_writers,
    ]
    try:
        subprocess.run([*NAMESPACE, "mount", "-t", "tmpfs", "tmpfs", folder], check=True)
    except (OSError, subprocess.CalledProcessError):
        return scenarios.play(*played, folder=folder)
    played.append(scenarios.full_and_read_only_disk)
    return scenarios.play(*played, folder=folder, before=NAMESPACE)


def test_killed_at_every_step(findings):
    steps = findings["killed_at_every_step"]
    assert {step["code"] for step in steps} == {-9}
    assert all(step["intact"] and step["goes_on"] for step in steps)
    assert {tuple(step["clean"]) for step in steps} == {(".lock", "entries", "manifest.json")}
    # The entry is not there until, at one step, it is.
    entries = [step["entries"] for step in steps]
    assert entries == sorted(entries)
    assert set(entries) == {1, 2}
    # The disturbance did reach the files: something was left behind.
    assert any(step["entries"] == 1 and not step["unchanged"] for step in steps)


def test_refused_by_the_system_at_every_step(findings):
    steps = findings["refused_at_every_step"]
    # A refusal that does no harm, to make a folder that is there already, is none.
    assert {step["code"] for step in steps} <= {scenarios.REFUSED, scenarios.DONE}
    assert sum(step["code"] == scenarios.REFUSED for step in steps) > 20
    assert all(step["intact"] and step["goes_on"] for step in steps)
    assert all(step["unchanged"] == (step["entries"] == 1) for step in steps)
    assert {step["entries"] for step in steps} == {1, 2}


def test_killed_at_any_moment(findings):
    finding = findings["killed_at_any_moment"]
    assert finding["kills"] == 15
    assert finding["intact"]


def test_several_writers(findings):
    finding = findings["several_writers"]
    assert finding["codes"] == [scenarios.DONE] * 4
    written = [tuple(pair) for pair in finding["written"]]
    assert sorted(written) == [(writer, number) for writer in range(4) for number in range(5)]


def test_two_million_states_take_no_memory(findings):
    finding = findings["two_million_states"]
    assert finding["shape"] == [2_000_000, 18]
    assert finding["last"] == [1.0] * 18
    assert finding["megabytes"] < 4


def test_full_and_read_only_disk(findings):
    if "full_and_read_only_disk" not in findings:
        pytest.skip("this system lets nobody mount a small disk")
    finding = findings["full_and_read_only_disk"]
    assert "Cannot append to" in finding["full"]
    assert "No space left on device" in finding["full"]
    assert finding["unchanged"]
    assert finding["readable"]
    assert "Read-only file system" in finding["read_only"]


def test_locked_archive_can_be_read_but_not_written(tmp_path):
    archive = Archive.create(tmp_path)
    archive.append(torch.zeros(1, 1))
    before = listing(tmp_path)
    with (tmp_path / ".lock").open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(ArchiveError, match="somebody else is writing to this archive"):
            archive.append(torch.zeros(1, 1))
        assert listing(tmp_path) == before
        assert len(Archive.open(tmp_path)) == 1
    archive.append(torch.zeros(1, 1))
    assert len(archive) == 2


def test_interrupted_by_the_user(tmp_path, monkeypatch):
    archive = Archive.create(tmp_path)
    before = set(listing(tmp_path))

    monkeypatch.setattr(os, "fsync", mock.Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        archive.append(torch.zeros(1, 1))
    monkeypatch.undo()
    assert set(listing(tmp_path)) == before
    archive.append(torch.zeros(1, 1))


def test_on_disk_before_it_is_listed(tmp_path, monkeypatch):
    """A power cut: all of an entry is synced before its rename, that before the manifest."""
    archive = Archive.create(tmp_path)
    events = []
    fsync, rename, replace = os.fsync, os.rename, os.replace

    def note_fsync(descriptor):
        events.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        fsync(descriptor)

    def note_rename(source, target):
        events.append("rename")
        rename(source, target)

    def note_replace(source, target):
        events.append("replace")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", note_fsync)
    monkeypatch.setattr(os, "rename", note_rename)
    monkeypatch.setattr(os, "replace", note_replace)
    entry = archive.append(torch.zeros(3, 2), policy=odd_policy(), step=torch.arange(3))
    moved, listed = events.index("rename"), events.index("replace")
    aside = tmp_path / ".append"
    written = {str(aside)} | {
        str(aside / path.relative_to(entry.path)) for path in entry.path.rglob("*")
    }
    assert set(events[:moved]) >= written
    assert set(events[moved:listed]) >= {
        str(tmp_path / "entries"),
        str(tmp_path / ".manifest.json"),
    }
    assert str(tmp_path) in events[listed:]
