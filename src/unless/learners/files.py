"""Keep what was learned in a .unless file, and bring it back as it was."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from unless.data.dataset import Dataset
from unless.errors import FileFormatError, NotFitted, SettingError, TooLarge, UnlessError
from unless.formats.catalogue import write_model
from unless.formats.record import Record, Value, load_record, save_record
from unless.formats.structures import Structure
from unless.independence.design_effects import drawn_alike
from unless.inference.model import LogLinearModel
from unless.knowledge.keeping import keep_statements, read_statements
from unless.knowledge.statements import Statements
from unless.learners.catalogue import LEARNERS, learner_named
from unless.learners.classifier import UnlessClassifier
from unless.learners.estimator import Estimator
from unless.structures.canonical import CanonicalModel
from unless.weights.priors import Prior, parse_prior

PathLike = str | os.PathLike[str]
# A model with weights is written in these formats, too, by the ending of its file.
OTHER_ENDINGS = (".mn", ".uai", ".bif", ".json", ".graphml")


def save(learned: Estimator | Structure, path: PathLike, *, rows: bool = True) -> None:
    """Write a fitted estimator, a structure or a model with weights to one .unless file.

    The same answer gives the same bytes. A model with weights whose file ends in .mn, .uai, .bif, .json or
    .graphml is written in that format, as `write_model` does.

    Of an estimator are kept the settings that shape the answer, the variables, the structure, the counts of
    tests, the statements with their evidence, and the collapsed table: its distinct rows and how often each
    occurs. A new file that holds rows may be read by its owner alone; one that replaces another keeps who may
    read it.

    Parameters
    ----------
    rows
        False leaves the table out, and the tables of counts behind the statements. `ask` and `report` then
        want the table again. The graphs of a canonical model (CSGS, CSPC) are filed under the rows, so that
        it cannot be saved without them.
    """
    if not isinstance(rows, bool):
        raise SettingError(f"rows={rows!r} must be True or False.")
    if not isinstance(learned, Estimator):
        _check_rows(rows, learned)
        if isinstance(learned, LogLinearModel) and Path(path).suffix.lower() in OTHER_ENDINGS:
            write_model(learned, path)
            return
        save_record(Record(learned), path)
        return
    learned.check_fitted()
    name = type(learned).__name__
    if not _is_known(learned):
        raise SettingError(f"{name} is not one of the learners a file can name: {', '.join(LEARNERS)}.")
    _check_rows(rows, learned.structure_)
    save_record(make_record(learned, rows=rows), path)


def _is_known(learned: Estimator) -> bool:
    return type(learned) in (LEARNERS.get(type(learned).__name__), UnlessClassifier)


def _check_rows(rows: bool, structure: Structure) -> None:
    if not rows and isinstance(structure, CanonicalModel):
        raise SettingError(
            "A graph for each context is filed under the rows of the table, so that it cannot be saved "
            "without rows; save its features(), or learn with a learner that keeps no contexts, such as GGS."
        )


def make_record(learned: Estimator, *, rows: bool = True, statements: bool = True) -> Record:
    """Say what a fitted estimator learned, how and from what, in plain values."""
    settings = {setting: _plain(value) for setting, value in learned.answer_settings().items()}
    structure, more = learned._kept()
    results: dict[str, Value] = {
        "n_tests": learned.n_tests_,
        "n_distinct_tests": learned.n_distinct_tests_,
        "notes": list(learned.notes_),
        **more,
        **({} if learned.target_ is None else {"target": learned.target_}),
    }
    table: Dataset | None = getattr(learned, "data_", None) if rows else None
    if table is not None:
        # Files keep no weights.
        table = drawn_alike(table)
    said = _statements(learned) if statements else None
    kept = None if said is None else keep_statements(said, with_tables=rows)
    return Record(structure, type(learned).__name__, settings, results, table, kept)


def _statements(learned: Estimator) -> Statements | None:
    """Return what is said, if it can be: a structure too large to explain is kept all the same."""
    try:
        return learned._all_statements()
    except (TooLarge, NotFitted):
        return None


def load(path: PathLike) -> Estimator | Structure:
    """Read a .unless file: a fitted estimator if it holds one, else the structure or model."""
    record = load_record(path)
    if record.learner is None:
        return record.structure
    try:
        return revive(record)
    except (UnlessError, KeyError, TypeError, ValueError) as error:
        raise FileFormatError(
            f"{os.fspath(path)!r} does not hold a learner this version knows: {str(error).rstrip('.')}."
        ) from None


def revive(record: Record) -> Estimator:
    """Make the fitted estimator that a record tells of."""
    is_classifier = record.learner == UnlessClassifier.__name__
    learner = UnlessClassifier() if is_classifier else learner_named(str(record.learner))()
    learner.set_params(**{name: _rich(name, value) for name, value in record.settings.items()})
    learner.check_settings()
    learner._bring_back(record.structure, record.results)
    learner.n_tests_ = _number(record, "n_tests")
    learner.n_distinct_tests_ = _number(record, "n_distinct_tests")
    notes = record.results.get("notes")
    if not isinstance(notes, list):
        raise SettingError("its notes are not a list")
    learner.notes_ = tuple(map(str, notes))
    if record.table is not None:
        learner.data_ = replace(record.table, notes=learner.notes_)
    if record.statements is not None:
        learner._statements = read_statements(record.statements, record.domain)
    learner.target_ = _target(record)
    learner.feature_names_in_ = np.array(record.domain.names, dtype=object)
    learner.n_features_in_ = len(record.domain)
    learner._revived()
    return learner


def _target(record: Record) -> str | None:
    target = record.results.get("target")
    if target is not None and target not in record.domain:
        raise SettingError(f"its target {target!r} is not one of its variables")
    return None if target is None else str(target)


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
