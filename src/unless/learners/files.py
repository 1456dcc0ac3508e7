"""Keep what was learned in a .unless file, and bring it back as it was."""

import os
from typing import Any

import numpy as np

from unless.errors import FileFormatError, SettingError, UnlessError
from unless.formats.record import Record, Value, load_record, save_record
from unless.formats.structures import Structure
from unless.inference.priors import Prior, parse_prior
from unless.learners.catalogue import LEARNERS, learner_named
from unless.learners.estimator import Estimator

Path = str | os.PathLike[str]


def save(learned: Estimator | Structure, path: Path) -> None:
    """Write a fitted estimator, a structure or a model with weights to one .unless file.

    The same answer gives the same bytes.

    Kept are the settings that shape the answer, the variables, the structure and the counts of tests. The
    rows of the table are not kept, but the contexts of a canonical model, with their counts, are what its
    graphs are filed under.
    """
    if not isinstance(learned, Estimator):
        save_record(Record(learned), path)
        return
    learned.check_fitted()
    name = type(learned).__name__
    if LEARNERS.get(name) is not type(learned):
        raise SettingError(f"{name} is not one of the learners a file can name: {', '.join(LEARNERS)}.")
    save_record(make_record(learned), path)


def make_record(learned: Estimator) -> Record:
    """Say what a fitted estimator learned, and how, in plain values."""
    settings = {setting: _plain(value) for setting, value in learned.answer_settings().items()}
    structure, more = learned._kept()
    results: dict[str, Value] = {
        "n_tests": learned.n_tests_,
        "n_distinct_tests": learned.n_distinct_tests_,
        "notes": list(learned.notes_),
        **more,
    }
    return Record(structure, type(learned).__name__, settings, results)


def load(path: Path) -> Estimator | Structure:
    """Read a .unless file: a fitted estimator if it holds one, else the structure or model."""
    record = load_record(path)
    if record.learner is None:
        return record.structure
    try:
        return _revive(record)
    except (UnlessError, KeyError, TypeError, ValueError) as error:
        raise FileFormatError(
            f"{os.fspath(path)!r} does not hold a learner this version knows: {str(error).rstrip('.')}."
        ) from None


def _revive(record: Record) -> Estimator:
    learner = learner_named(str(record.learner))()
    learner.set_params(**{name: _rich(name, value) for name, value in record.settings.items()})
    learner.check_settings()
    learner._bring_back(record.structure, record.results)
    learner.n_tests_ = _number(record, "n_tests")
    learner.n_distinct_tests_ = _number(record, "n_distinct_tests")
    notes = record.results.get("notes")
    if not isinstance(notes, list):
        raise SettingError("its notes are not a list")
    learner.notes_ = tuple(map(str, notes))
    learner.feature_names_in_ = np.array(record.domain.names, dtype=object)
    learner.n_features_in_ = len(record.domain)
    return learner


def _number(record: Record, name: str) -> int:
    value = record.results.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise SettingError(f"its {name} is {value!r}, no number of tests")
    return value


def _plain(value: Any) -> Any:
    """Write priors as text and numpy's numbers as numbers; everything else is plain already."""
    if isinstance(value, Prior):
        return repr(value)
    if isinstance(value, list | tuple):
        return [_plain(one) if isinstance(one, Prior | np.generic) else one for one in value]
    return value.item() if isinstance(value, np.generic) else value


def _rich(name: str, value: Any) -> Any:
    if name != "prior" or value is None or value == "validate":
        return value
    return [parse_prior(one) for one in value] if isinstance(value, list) else parse_prior(value)
