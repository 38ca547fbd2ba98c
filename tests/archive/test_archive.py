"""An archive gives back what it was given, entry by entry, and only what is complete."""

import copy
import json
import shutil

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from tensordict import TensorDict

from sipo_trl.archive import Archive, ArchiveError, _tensors

from .helpers import edit_json, listing, odd_policy, random_tensor, reseal, same_bits

FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
OTHERS = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.fixture
def archive(tmp_path):
    return Archive.create(tmp_path / "archive")


class TestCreate:
    def test_new_archive_is_empty(self, tmp_path):
        archive = Archive.create(tmp_path / "runs" / "archive")
        assert len(archive) == len(Archive.open(archive.path)) == 0
        assert list(archive) == []
        assert archive.state_mean is None
        assert archive.state_std is None
        assert archive.path == tmp_path / "runs" / "archive"

    def test_empty_folder_will_do(self, tmp_path):
        assert len(Archive.create(tmp_path)) == 0

    def test_archive_is_not_overwritten(self, archive):
        archive.append(torch.zeros(1, 1))
        with pytest.raises(ArchiveError, match="there is something already"):
            Archive.create(archive.path)
        assert len(Archive.open(archive.path)) == 1

    def test_entries_without_their_manifest_are_not_overwritten(self, archive):
        archive.append(torch.zeros(1, 1))
        (archive.path / "manifest.json").unlink()
        with pytest.raises(ArchiveError, match="there is something already"):
            Archive.create(archive.path)

    def test_foreign_folder_stays_as_it_is(self, tmp_path):
        (tmp_path / "thesis.tex").write_text("years of work")
        before = listing(tmp_path)
        with pytest.raises(ArchiveError, match="there is something already"):
            Archive.create(tmp_path)
        with pytest.raises(ArchiveError, match="there is something already"):
            Archive.create(tmp_path / "thesis.tex")
        assert listing(tmp_path) == before

    def test_impossible_path(self, tmp_path):
        (tmp_path / "file").touch()
        with pytest.raises(ArchiveError, match="Cannot create an archive at"):
            Archive.create(tmp_path / "file" / "archive")


class TestOpen:
    def test_relative_path_survives_a_change_of_folder(self, archive, monkeypatch):
        archive.append(torch.ones(2, 1))
        monkeypatch.chdir(archive.path.parent)
        opened = Archive.open("archive")
        monkeypatch.chdir("/")
        assert opened[0].states.sum() == 2

    def test_reading_writes_nothing(self, archive):
        archive.append(torch.zeros(4, 2), policy=odd_policy(), step=torch.arange(4))
        before = listing(archive.path)
        opened = Archive.open(archive.path)
        opened[0].load_policy()
        opened[0].data["states"].add_(1)
        opened.verify()
        assert listing(archive.path) == before

    def test_no_entry_there(self, archive):
        archive.append(torch.zeros(1, 1))
        assert archive[-1] is archive[0]
        for index in (1, -2):
            with pytest.raises(IndexError, match=f"there is no entry {index} among 1"):
                archive[index]

    def test_repr_tells_where_and_how_many(self, archive):
        assert repr(archive) == f"Archive({str(archive.path)!r}, entries=0)"


class TestAppend:
    @given(
        shape=st.lists(st.integers(1, 4), min_size=1, max_size=4),
        dtype=st.sampled_from(FLOATS + OTHERS),
        column=st.sampled_from(FLOATS + OTHERS),
        width=st.integers(0, 3),
        metrics=st.dictionaries(st.text(), JSON, max_size=3),
        seed=st.integers(0, 9),
    )
    @settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
    def test_round_trip(self, tmp_path_factory, shape, dtype, column, width, metrics, seed):
        states = random_tensor(dtype, shape, seed)
        extra = random_tensor(column, (shape[0], width), seed + 1)
        archive = Archive.create(tmp_path_factory.mktemp("archive"))
        given_metrics = copy.deepcopy(metrics)
        entry = archive.append(states, metrics=metrics, config={"all": metrics}, extra=extra)
        for found in (entry, Archive.open(archive.path)[0]):
            assert same_bits(found.states, states)
            assert same_bits(found.data["extra"], extra)
            assert set(found.data.keys()) == {"states", "extra"}
            assert found.metrics == given_metrics
            assert found.config == {"all": given_metrics}
        shutil.rmtree(archive.path)

    def test_tensordict_of_columns(self, archive):
        columns = {
            "states": torch.randn(6, 2),
            "return": torch.randn(6, 1),
            "any name, even ../this": torch.arange(6),
        }
        entry = archive.append(TensorDict(columns, [6]), success=torch.ones(6, dtype=torch.bool))
        assert set(entry.data.keys()) == {*columns, "success"}
        assert all(same_bits(entry.data[name], column) for name, column in columns.items())

    def test_views_and_gradients(self, archive):
        base = torch.randn(3, 8, requires_grad=True)
        for states in (base.t(), base.t()[::2], base[0][:, None].expand(8, 3)):
            assert same_bits(archive.append(states).states, states.detach())

    def test_images(self, archive):
        frames = torch.randint(0, 256, (5, 12, 84, 84), dtype=torch.uint8)
        assert archive.append(frames).states.equal(frames)
        assert archive.state_mean is None
        assert archive.state_std is None

    def test_memory_mapped_states_of_another_archive(self, archive, tmp_path):
        entry = archive.append(torch.randn(4, 2), step=torch.arange(4))
        copied = Archive.create(tmp_path / "copy").append(entry.data)
        assert copied.data["states"].equal(entry.states)
        assert copied.data["step"].equal(torch.arange(4))

    def test_only_json_and_raw_tensors_on_disk(self, archive):
        archive.append(torch.zeros(3, 2), policy=odd_policy(), step=torch.arange(3))
        files = [path for path in archive.path.rglob("*") if path.is_file()]
        assert {path.suffix or path.name for path in files} == {".json", ".memmap", ".lock"}
        for path in files:
            if path.suffix == ".json":
                json.loads(path.read_text())

    def test_tensordict_reads_the_folders_too(self, archive):
        entry = archive.append(torch.randn(3, 2), step=torch.arange(3))
        loaded = TensorDict.load_memmap(entry.path / "states", allow_pickle=False)
        assert loaded.batch_size == (3,)
        assert loaded["states"].equal(entry.states)
        assert loaded["step"].equal(torch.arange(3))

    def test_entry_of_another_writer_is_kept(self, archive):
        other = Archive.open(archive.path)
        archive.append(torch.zeros(1, 1), metrics={"by": 1})
        other.append(torch.ones(1, 1), metrics={"by": 2})
        assert [entry.metrics["by"] for entry in other] == [1, 2]
        assert [entry.name for entry in Archive.open(archive.path)] == ["0001", "0002"]

    def test_known_entries_stay_mapped(self, archive):
        first = archive.append(torch.zeros(1, 1))
        archive.append(torch.zeros(1, 1))
        assert archive[0] is first

    @pytest.mark.parametrize(
        "states", [torch.zeros(2, 4), torch.zeros(2, 3, 1), torch.zeros(2, 3).double()]
    )
    def test_states_of_another_form_are_refused(self, archive, states):
        archive.append(torch.zeros(2, 3))
        before = listing(archive.path)
        with pytest.raises(
            ArchiveError, match=r"holds states of torch.float32 and shape \['n', 3\]"
        ):
            archive.append(states)
        assert listing(archive.path) == before

    @pytest.mark.parametrize("what", ["metrics", "config"])
    @pytest.mark.parametrize(
        ("value", "where"),
        [
            ({"a": [1, float("nan")]}, r"\['a'\]\[1\]"),
            ({"a": torch.zeros(())}, r"\['a'\]"),
            ({1: 2}, ""),
        ],
    )
    def test_what_json_cannot_hold_is_refused(self, archive, what, value, where):
        before = listing(archive.path)
        with pytest.raises(ArchiveError, match=f"^{what}{where} is not plain JSON"):
            archive.append(torch.zeros(1, 1), **{what: value})
        assert listing(archive.path) == before

    def test_leftovers_of_a_killed_append_are_replaced(self, archive):
        archive.append(torch.zeros(1, 1))
        for folder in (".append/states", "entries/0002/states"):
            (archive.path / folder).mkdir(parents=True)
            (archive.path / folder / "states.memmap").write_bytes(b"half an ent")
        (archive.path / ".manifest.json").write_text('{"format": "sip')
        assert len(Archive.open(archive.path)) == 1
        archive.append(torch.ones(1, 1))
        archive.verify()
        assert [float(entry.states) for entry in archive] == [0, 1]
        names = {path.name for path in archive.path.iterdir()}
        assert names == {"manifest.json", "entries", ".lock"}

    def test_empty_folders_need_not_survive_a_copy(self, archive):
        (archive.path / "entries").rmdir()
        (archive.path / ".lock").unlink()
        archive.append(torch.zeros(1, 1))
        archive.verify()


class TestStatistics:
    def test_against_numpy(self, archive, monkeypatch):
        monkeypatch.setattr(_tensors, "CHUNK_BYTES", 1000)
        generator = torch.Generator().manual_seed(0)
        scale = torch.tensor([1e-3, 1.0, 1e4])
        # An offset that would cancel in float32, or with the textbook formula.
        states = torch.randn(1003, 3, generator=generator) * scale + 1000 * scale
        archive.append(states)
        opened = Archive.open(archive.path)
        exact = states.numpy().astype(np.float64)
        assert opened.state_mean.dtype == opened.state_std.dtype == torch.float32
        np.testing.assert_allclose(opened.state_mean, exact.mean(0), rtol=1e-7)
        np.testing.assert_allclose(opened.state_std, exact.std(0), rtol=1e-7)

    def test_frozen_with_the_first_entry(self, archive):
        archive.append(torch.tensor([[0.0, 0.0], [2.0, 0.0]]))
        archive.append(torch.full((5, 2), 100.0))
        for found in (archive, Archive.open(archive.path)):
            assert found.state_mean.tolist() == [1, 0]
            assert found.state_std.tolist() == [1, 0]

    def test_keep_the_shape_of_the_states(self, archive):
        archive.append(torch.randn(4, 2, 3).half())
        assert archive.state_mean.shape == archive.state_std.shape == (2, 3)

    def test_states_beyond_float32_are_refused(self, archive):
        before = listing(archive.path)
        with pytest.raises(ArchiveError, match="too large"):
            archive.append(torch.full((2, 1), 1e200, dtype=torch.float64))
        assert len(archive) == 0
        assert set(listing(archive.path)) == set(before)

    def test_foreign_to_the_states(self, archive):
        archive.append(torch.zeros(2, 2))
        reseal(archive.path, change=lambda manifest: manifest.update(state_mean=[0.0]))
        with pytest.raises(ArchiveError, match=r"manifest\.json: damaged: its statistics"):
            Archive.open(archive.path)


class TestVerify:
    def test_finds_damage_that_open_did_not_look_for(self, archive):
        entry = archive.append(torch.zeros(3, 2), step=torch.arange(3))
        (entry.path / "states" / "step.memmap").write_bytes(bytes(23) + b"\x01")
        opened = Archive.open(archive.path, verify=False)
        assert opened[0].data["step"][2] == 1 << 56
        with pytest.raises(ArchiveError, match=r"step\.memmap: damaged: its SHA-256"):
            opened.verify()

    def test_finds_an_edited_manifest(self, archive):
        archive.append(torch.zeros(3, 1))
        edit_json(
            archive.path / "manifest.json", lambda manifest: manifest.update(state_mean=[5.0])
        )
        with pytest.raises(ArchiveError, match=r"manifest\.json: damaged"):
            Archive.open(archive.path)
        opened = Archive.open(archive.path, verify=False)
        assert opened.state_mean == 5
        with pytest.raises(ArchiveError, match=r"manifest\.json: damaged"):
            opened.verify()


@pytest.fixture(scope="module")
def good_archive(tmp_path_factory):
    archive = Archive.create(tmp_path_factory.mktemp("good") / "archive")
    archive.append(torch.randn(5, 2), policy=odd_policy(), step=torch.arange(5), metrics={"a": 1})
    archive.append(torch.randn(5, 2))
    return archive


def content(path):
    """All that an archive says, to be compared."""
    archive = Archive.open(path)
    archive.verify()
    return [
        archive.state_mean.tolist(),
        archive.state_std.tolist(),
        *(
            (entry.metrics, entry.config, {key: c.tolist() for key, c in entry.data.items()})
            for entry in archive
        ),
    ]


@given(data=st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_damage_is_found(good_archive, tmp_path_factory, data):
    """A flipped bit anywhere, or a file cut anywhere, is an error and never another content."""
    folder = tmp_path_factory.mktemp("damaged") / "archive"
    shutil.copytree(good_archive.path, folder)
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size)
    path = data.draw(st.sampled_from(files), label="file")
    raw = bytearray(path.read_bytes())
    place = data.draw(st.integers(0, len(raw) - 1), label="byte")
    if data.draw(st.booleans(), label="cut"):
        raw = raw[:place]
    else:
        raw[place] ^= 1 << data.draw(st.integers(0, 7), label="bit")
    path.write_bytes(raw)
    try:
        found = content(folder)
    except ArchiveError:
        found = None
    # A change of the manifest may mean nothing, such as another kind of space.
    harmless = path.name == "manifest.json" and found == content(good_archive.path)
    assert found is None or harmless
    shutil.rmtree(folder.parent)
