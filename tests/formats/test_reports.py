"""How weights were found survives the .unless file."""

import math
from dataclasses import replace

import msgspec
import pytest

import unless
from formats.test_record import change, members_of
from unless.errors import FileFormatError
from unless.formats.catalogue import read_model, write_model
from unless.weights.intervals import weight_intervals


@pytest.fixture(scope="module")
def data():
    return unless.datasets.load_ucb_admissions()


@pytest.fixture(scope="module")
def features(data):
    return unless.CSGS().fit(data).structure_.features()


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"prior": None},
        {"prior": unless.Gaussian(1 / 3) + unless.Laplace(1e-7)},
        {"prior": "validate", "random_state": 1},
        {"objective": "likelihood", "relative_tolerance": 1e-3},
        {"max_iterations": 1},
    ],
)
def test_a_model_remembers_how_it_was_fitted(features, data, tmp_path, settings):
    net = unless.fit_weights(features, data, **settings)
    unless.save(net, tmp_path / "m.unless")
    again = unless.load(tmp_path / "m.unless")
    assert again.fit_report == net.fit_report
    assert str(again.fit_report) == str(net.fit_report)
    write_model(again, tmp_path / "n.unless")
    assert (tmp_path / "m.unless").read_bytes() == (tmp_path / "n.unless").read_bytes()


def test_intervals_of_a_model_from_a_file_know_its_prior(features, data, tmp_path):
    net = unless.fit_weights(features, data, unless.Gaussian(0.5))
    write_model(net, tmp_path / "m.unless")
    found, wanted = (weight_intervals(one, data) for one in (read_model(tmp_path / "m.unless"), net))
    assert found.low.tolist() == wanted.low.tolist()


def test_a_model_without_a_report_says_nothing_of_one(features, tmp_path):
    write_model(unless.LogLinearModel(features, [0.0] * len(features)), tmp_path / "m.unless")
    told = msgspec.json.decode(members_of(tmp_path / "m.unless")["model.json"])
    assert told["structure"].keys() == {"type", "n_features", "n_conditions"}
    assert told["version"] == 2
    assert read_model(tmp_path / "m.unless").fit_report is None


def test_a_report_that_cannot_be_written_is_left_out(features, data, tmp_path):
    net = unless.fit_weights(features, data)
    odd = replace(net.fit_report, objective=math.inf)
    write_model(unless.LogLinearModel(features, net.weights, report=odd), tmp_path / "m.unless")
    assert read_model(tmp_path / "m.unless").fit_report is None


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("prior", "Cauchy(1)"),
        ("measure", "luck"),
        ("stopped_by", "me"),
        ("n_iterations", -1),
        ("objective", "x"),
    ],
)
def test_a_damaged_report_is_refused(features, data, tmp_path, field, value):
    write_model(unless.fit_weights(features, data), tmp_path / "m.unless")
    change(tmp_path / "m.unless", **{f"structure__fit__{field}": value})
    with pytest.raises(FileFormatError, match="damaged"):
        read_model(tmp_path / "m.unless")
