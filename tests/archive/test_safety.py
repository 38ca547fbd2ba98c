"""Somebody else's archive can be wrong in any way, but it runs nothing and reaches nothing."""

import json
import os
import pickle
import shutil
import sys
from pathlib import Path

import pytest
import torch
from tensordict import TensorDict, tensorclass

from sipo_trl.archive import Archive, ArchiveError

from .helpers import edit_json, listing, odd_policy, reseal

EXPLOSIONS = []


@tensorclass
class Bomb:
    """tensordict builds a registered class like this one if a ``meta.json`` names it."""

    fuse: torch.Tensor = None

    def __post_init__(self):
        EXPLOSIONS.append("tensorclass")


class Payload:
    """A pickle that leaves a mark."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return Path.touch, (self.mark,)


@pytest.fixture
def path(tmp_path):
    archive = Archive.create(tmp_path / "archive")
    archive.append(torch.zeros(3, 2), policy=odd_policy(), step=torch.arange(3))
    return archive.path


@pytest.fixture
def entry(path):
    return path / "entries" / "0001"


def read_everything(path, *, verify=True):
    for found in Archive.open(path, verify=verify):
        found.states.sum()
        found.data.sum()
        found.metrics.items()
        found.config.items()
        found.load_policy()


def refused(path, message):
    """Whatever is read, with or without checksums, is refused, and no file was touched."""
    before = listing(path)
    for verify in (True, False):
        with pytest.raises(ArchiveError, match=message):
            read_everything(path, verify=verify)
    assert listing(path) == before


def test_class_named_in_meta_json(path, entry):
    Bomb(fuse=torch.zeros(3), batch_size=[3]).memmap(entry / "bomb")
    EXPLOSIONS.clear()
    TensorDict.load_memmap(entry / "bomb", allow_pickle=False)
    assert EXPLOSIONS  # The threat is real.
    EXPLOSIONS.clear()
    for folder in ("states", "policy"):
        shutil.copy(entry / "bomb" / "meta.json", entry / folder / "meta.json")
        shutil.copytree(entry / "bomb" / "_tensordict", entry / folder / "_tensordict")
    reseal(path)
    read_everything(path)
    Archive.open(path).verify()
    assert not EXPLOSIONS


def test_pickle_lying_there(path, entry, tmp_path):
    mark = tmp_path / "exploded"
    names = [f"{folder}/other.pickle" for folder in ("states", "policy")]
    for name in names:
        (entry / name).write_bytes(pickle.dumps(Payload(mark)))
    read_everything(path)
    reseal(
        path,
        change=lambda manifest: manifest["entries"][0]["files"].update(
            {name: {"size": (entry / name).stat().st_size, "sha256": "0"} for name in names}
        ),
    )
    reseal(path)
    read_everything(path)
    Archive.open(path).verify()
    assert not mark.exists()


@pytest.mark.parametrize(
    "name", ["../../../secret", "{root}/secret", "states/../../../../secret", "states/..", "."]
)
def test_file_names_that_lead_out(path, tmp_path, name):
    (tmp_path / "secret").write_bytes(bytes(24))
    name = name.format(root=tmp_path)
    record = {"size": 24, "sha256": "0"}
    reseal(path, change=lambda m: m["entries"][0]["files"].update({name: record}))
    refused(path, "is no file name that an entry has")


@pytest.mark.parametrize("name", ["../../..", "/", "0001/../0001", "", "0002", 1, None])
def test_entry_names_that_are_not_ours(path, name):
    reseal(path, change=lambda manifest: manifest["entries"][0].update(name=name))
    refused(path, r"manifest\.json: damaged.*entry 0 is named")


def test_null_in_a_name(path):
    record = {"size": 1, "sha256": "0"}
    reseal(path, change=lambda m: m["entries"][0]["files"].update({"a\0b": record}))
    refused(path, "cannot be read")


@pytest.mark.parametrize(
    "name",
    ["manifest.json", "entries", "entries/0001", "entries/0001/states", "entries/0001/entry.json"],
)
def test_links(path, tmp_path, name):
    (path / name).rename(tmp_path / "outside")
    (path / name).symlink_to(tmp_path / "outside")
    refused(path, "a link, which may lead out|not a regular file")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"shape": [3, 2**40]}, "takes 26388279066624 bytes, its file has 24"),
        ({"shape": [3, 2**62, 2**62]}, "takes .* bytes, its file has 24"),
        ({"shape": [2**64, 0], "file": None}, "is not a shape"),
        ({"shape": [3, 2**62, 2**62, 0], "file": None}, "cannot be mapped"),
        ({"shape": [-3, -2]}, "is not a shape"),
        ({"shape": [3.0, 2]}, "is not a shape"),
        ({"shape": "32"}, "is not a shape"),
        ({"shape": []}, "damaged"),
        ({"shape": [1]}, "takes 8 bytes, its file has 24|has 1 rows, not 3"),
        ({"shape": [6], "dtype": "int32"}, "has 6 rows, not 3"),
        ({"dtype": "Tensor"}, "damaged: KeyError"),
        ({"dtype": ["int64"]}, "damaged: TypeError"),
        ({"file": "../../../../secret"}, "damaged: KeyError"),
        ({"file": "/etc/passwd"}, "damaged: KeyError"),
        ({"file": None}, "takes 24 bytes, its file has 0"),
        ({"file": ["states/step.memmap"]}, "damaged: TypeError"),
    ],
)
def test_lies_about_a_tensor(path, entry, change, message):
    edit_json(entry / "entry.json", lambda document: document["columns"]["step"].update(change))
    reseal(path)
    refused(path, rf"entry\.json: .*({message})")


@pytest.mark.parametrize(
    "change",
    [
        {"columns": {}},
        {"columns": []},
        {"columns": None},
        {"columns": {"states": None}},
        {"weights": 3},
        {"metrics": 3},
        {"config": "text"},
        {"metrics": float("nan")},
        {"metrics": {"return": float("nan")}},
        {"config": {"rate": float("inf")}},
        {"policy_spec": {"builder": "odd"}},
        {"policy_spec": ["os", "system"]},
        {"policy_spec": {"builder": "odd", "kwargs": {"width": -1}}},
        {"policy_spec": {"builder": "odd", "kwargs": {"width": 5}}},
        {"policy_spec": {"builder": "odd", "kwargs": {"command": "true"}}},
    ],
)
def test_lies_about_the_rest(path, entry, change):
    edit_json(entry / "entry.json", lambda document: document.update(change))
    reseal(path)
    refused(path, r"entry\.json")


@pytest.mark.parametrize("text", ["{", "[" * 100_000, '{"metrics": 1e999}', '"\\ud800', "\xff"])
def test_entry_that_is_not_json(path, entry, text):
    (entry / "entry.json").write_text(text, encoding="latin-1")
    reseal(path)
    refused(path, r"entry\.json: (cannot be read|damaged)")


@pytest.mark.parametrize("name", ["os:system", "evil:run", "evil.run", "nobody", ["odd"], None])
def test_builder_named_by_the_archive_is_not_imported(path, entry, tmp_path, monkeypatch, name):
    (tmp_path / "evil.py").write_text("raise SystemExit\n")
    monkeypatch.syspath_prepend(tmp_path)
    edit_json(entry / "entry.json", lambda document: document["policy_spec"].update(builder=name))
    reseal(path)
    refused(path, "cannot be rebuilt: There is no policy builder .*known: actor")
    assert "evil" not in sys.modules


@pytest.mark.parametrize("name", ["entries", ".append", ".lock", ".manifest.json", "entries/0001"])
def test_appending_through_a_link(tmp_path, name):
    """An archive of no entries yet, made so that the first append would write elsewhere."""
    archive = Archive.create(tmp_path / "archive")
    outside = tmp_path / "outside"
    (outside / "0001").mkdir(parents=True)
    (outside / "0001" / "thesis.tex").write_text("years of work")
    (outside / "states").mkdir()
    link = archive.path / name
    if link.is_dir():
        link.rmdir()
    link.unlink(missing_ok=True)
    link.symlink_to(outside)
    before = listing(outside)
    # The manifest's own scratch file is replaced, links and all; the others are refused.
    if name == ".manifest.json":
        archive.append(torch.zeros(1, 1))
    else:
        with pytest.raises(ArchiveError):
            archive.append(torch.zeros(1, 1))
    assert listing(outside) == before


def test_huge_shape_leaves_a_small_file_small(path, entry):
    """tensordict would make the file as large as the shape says."""
    edit_json(
        entry / "states" / "meta.json", lambda document: document["step"].update(shape=[3, 1000])
    )
    edit_json(
        entry / "entry.json", lambda document: document["columns"]["step"].update(shape=[3, 1000])
    )
    reseal(path)
    refused(path, "takes 24000 bytes, its file has 24")
    assert (entry / "states" / "step.memmap").stat().st_size == 24


def test_duplicate_names_in_json(path):
    """The last one counts, for the checksum too: what is checked is what is used."""
    text = (path / "manifest.json").read_text()
    assert text.startswith("{")
    (path / "manifest.json").write_text('{"version": 99, ' + text[1:])
    assert json.loads((path / "manifest.json").read_text())["version"] == 1
    read_everything(path)
    assert os.listdir(path / "entries") == ["0001"]  # noqa: PTH208
