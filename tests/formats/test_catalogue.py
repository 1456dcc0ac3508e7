"""Formats by the endings of files."""

import contextlib
import gzip
import os

import numpy as np
import pytest

from benchmarks.mutants import BIF
from formats.models import same_distribution, small_model
from formats.test_record import change_array
from unless.cli.commands import convert, fit
from unless.errors import FileFormatError, SettingError
from unless.formats import FORMATS, WITHOUT_WEIGHTS
from unless.formats.catalogue import READERS, WRITERS, read_model, write_model
from unless.formats.json_model import names_path
from unless.formats.record import Record, load_record, save_record
from unless.learners.files import load, save


@pytest.mark.parametrize("ending", [".unless", ".mn", ".uai", ".bif", ".json", ".MN", ".Json"])
def test_a_model_comes_back_packed_or_not(ending, tmp_path):
    path = tmp_path / f"x{ending}"
    write_model(small_model(), path)
    assert same_distribution(read_model(path), small_model())
    packed = tmp_path / f"x{ending}.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    assert read_model(str(packed)).domain == small_model().domain
    assert same_distribution(read_model(packed), small_model())


def test_known_networks_are_models(tmp_path):
    (tmp_path / "x.bif").write_text(BIF)
    assert read_model(tmp_path / "x.bif").domain.names == ("rain", "the grass", "shoes")


def test_save_and_load_take_models_with_weights(tmp_path):
    model = small_model()
    save(model, tmp_path / "x.unless")
    loaded = load(tmp_path / "x.unless")
    assert loaded.features == model.features
    np.testing.assert_array_equal(loaded.weights, model.weights)
    first = (tmp_path / "x.unless").read_bytes()
    save(loaded, tmp_path / "x.unless")
    assert (tmp_path / "x.unless").read_bytes() == first


def test_a_record_keeps_what_a_model_came_from(tmp_path):
    save_record(Record(small_model(), None, {"sd": 1.0}, {"n_iterations": 7}), tmp_path / "x.unless")
    record = load_record(tmp_path / "x.unless")
    assert (record.settings, record.results) == ({"sd": 1.0}, {"n_iterations": 7})


def test_a_weight_that_is_no_number_is_refused(tmp_path):
    save(small_model(), tmp_path / "x.unless")
    change_array(tmp_path / "x.unless", "weights.npy", lambda array: np.full_like(array, np.nan))
    with pytest.raises(FileFormatError, match="a weight is not a number"):
        load(tmp_path / "x.unless")


def test_a_structure_without_weights_is_no_model(tmp_path):
    save(small_model().features, tmp_path / "x.unless")
    with pytest.raises(FileFormatError, match=r"holds a structure \(FeatureSet\) without weights"):
        read_model(tmp_path / "x.unless")
    write_model(small_model(), tmp_path / "x.graphml")
    with pytest.raises(SettingError, match="holds a graph, which has no weights"):
        read_model(tmp_path / "x.graphml")


@pytest.mark.parametrize("ending", FORMATS)
def test_a_format_is_entered_wherever_it_is_looked_for(ending):
    assert ending in READERS
    assert ending in WRITERS
    told = [write_model, save, convert]
    if ending not in WITHOUT_WEIGHTS:
        told += [read_model, fit]
    for one in told:
        assert ending in one.__doc__, one.__name__


@pytest.mark.parametrize("name", ["x", "x.txt", "x.xml", "x.mn.gz", ".mn"])
def test_unknown_endings_are_refused_before_anything_is_written(name, tmp_path):
    with pytest.raises(SettingError, match=r"cannot be written as .* ends in \.unless, \.mn"):
        write_model(small_model(), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_ending_is_not_read():
    with pytest.raises(SettingError, match=r"cannot be read as 'x\.txt'"):
        read_model("x.txt")


def test_a_file_that_is_not_there_is_an_ordinary_error(tmp_path):
    for ending in (".unless", ".mn", ".uai", ".bif", ".json"):
        with pytest.raises(FileNotFoundError):
            read_model(tmp_path / f"x{ending}")


@pytest.mark.parametrize("ending", [".mn", ".uai", ".bif", ".json", ".graphml", ".unless"])
def test_a_failed_write_leaves_the_old_file(ending, tmp_path, monkeypatch):
    path = tmp_path / f"x{ending}"
    write_model(small_model(), path)
    before = {place: place.read_bytes() for place in tmp_path.iterdir()}

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_model(small_model(), path)
    assert {place: place.read_bytes() for place in tmp_path.iterdir()} == before


def test_names_of_a_packed_file_lie_beside_the_plain_one(tmp_path):
    assert names_path(tmp_path / "x.mn.gz") == names_path(tmp_path / "x.mn") == tmp_path / "x.mn.names.json"


def test_every_damaged_byte_of_a_model_is_noticed_or_harmless(tmp_path):
    path = tmp_path / "x.unless"
    save(small_model(), path)
    content = path.read_bytes()
    for place in range(0, len(content), 3):
        path.write_bytes(content[:place] + bytes([content[place] ^ 0x55]) + content[place + 1 :])
        with contextlib.suppress(FileFormatError):
            loaded = load(path)
            assert loaded.features == small_model().features
            np.testing.assert_array_equal(loaded.weights, small_model().weights)
    for place in range(0, len(content), 7):
        path.write_bytes(content[:place])
        with pytest.raises(FileFormatError):
            load(path)
