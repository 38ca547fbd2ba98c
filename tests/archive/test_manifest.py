"""What is not a good archive says so when it is opened: which file, what is wrong, what to do."""

import json
import os

import pytest
import torch

from sipo_trl.archive import Archive, ArchiveError

from .helpers import edit_json, reseal


@pytest.fixture
def path(tmp_path):
    archive = Archive.create(tmp_path / "archive")
    archive.append(torch.zeros(3, 2))
    return archive.path


def fails(path, message):
    for verify in (True, False):
        with pytest.raises(ArchiveError, match=message) as caught:
            Archive.open(path, verify=verify)
        assert str(path) in str(caught.value)


def test_no_such_path(tmp_path):
    fails(tmp_path / "nowhere", r"nowhere: there is no such folder.*Archive\.create")


def test_a_file(tmp_path):
    (tmp_path / "file").touch()
    fails(tmp_path / "file", "there is no such folder")


def test_any_folder(tmp_path):
    fails(tmp_path, r"not an archive, it has no manifest\.json: check the path")


@pytest.mark.parametrize("text", ["", "{", "\x80\x04K\x01.", '{"format": NaN}', "[" * 100_000])
def test_not_json(path, text):
    (path / "manifest.json").write_text(text)
    fails(path, r"manifest\.json: cannot be read")


@pytest.mark.parametrize("document", [{}, [], 3, None, {"format": "parquet", "version": 1}])
def test_foreign_json(path, document):
    (path / "manifest.json").write_text(json.dumps(document))
    fails(path, r"manifest\.json: not the manifest of a sipo_trl archive")


def test_newer_version(path):
    # A newer format may differ in everything else, even in how its checksum is made.
    edit_json(
        path / "manifest.json",
        lambda manifest: (manifest.update(version=2), manifest.pop("entries")),
    )
    fails(path, r"manifest\.json: written in format version 2.*reads up to 1: update sipo_trl")


@pytest.mark.parametrize(
    "change",
    [
        {"version": "1"},
        {"version": None},
        {"entries": None},
        {"entries": 7},
        {"entries": [None]},
        {"entries": "0001"},
        {"entries": [{"name": "0001"}]},
        {"entries": [{"name": "0001", "files": {}}]},
        {"entries": [{"name": "0001", "files": {"entry.json": {"size": 1}}}]},
        {"state_mean": "zero"},
        {"state_mean": [[0], [0, 1]]},
        {"state_std": [10**400]},
        {"state_std": [1e300, 0]},
        {"state_std": {"a": 1}},
    ],
)
def test_damaged_inside(path, change):
    reseal(path, change=lambda manifest: manifest.update(change))
    fails(path, r"manifest\.json: damaged")


def test_missing_key(path):
    reseal(path, change=lambda manifest: manifest.pop("state_mean"))
    fails(path, r"manifest\.json: damaged: KeyError\('state_mean'\)")


@pytest.mark.parametrize("name", ["entry.json", "states/states.memmap", "policy/meta.json"])
def test_truncated_missing_or_grown_file(path, name):
    file = path / "entries" / "0001" / name
    content = file.read_bytes()
    file.write_bytes(content[:-1])
    fails(path, rf"{name}: truncated or changed: {len(content) - 1} bytes instead of")
    file.write_bytes(content + b" ")
    fails(path, rf"{name}: truncated or changed")
    file.unlink()
    fails(path, rf"{name}: cannot be read .*No such file.*Restore the archive from a copy")
    os.mkfifo(file)
    fails(path, rf"{name}: not a regular file")


def test_missing_entry_folder(path):
    (path / "entries").rename(path / "elsewhere")
    fails(path, r"entries/0001/.*: cannot be read")


def test_first_version_stays_readable(path):
    """The names that version 1 uses on disk: changing them needs a new version."""
    manifest = json.loads((path / "manifest.json").read_text())
    assert manifest["format"] == "sipo_trl.archive"
    assert manifest["version"] == 1
    assert set(manifest) == {"format", "version", "sha256", "state_mean", "state_std", "entries"}
    (entry,) = manifest["entries"]
    assert entry["name"] == "0001"
    assert set(entry["files"]) == {
        "entry.json",
        "states/meta.json",
        "states/states.memmap",
        "policy/meta.json",
    }
    assert set(entry["files"]["entry.json"]) == {"size", "sha256"}
    document = json.loads((path / "entries" / "0001" / "entry.json").read_text())
    assert document == {
        "columns": {
            "states": {"file": "states/states.memmap", "dtype": "float32", "shape": [3, 2]},
        },
        "weights": {},
        "policy_spec": None,
        "metrics": {},
        "config": {},
    }
