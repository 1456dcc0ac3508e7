"""Keep what was learned in a .unless file, and bring it back as it was."""

import os
from pathlib import Path

from unless.errors import FileFormatError, SettingError, UnlessError
from unless.formats import FORMATS
from unless.formats.catalogue import write_model
from unless.formats.record import Record, load_record, save_record
from unless.inference.model import LogLinearModel
from unless.learners.base import Estimator, make_record, restore
from unless.learners.classifier import UnlessClassifier
from unless.learners.registry import LEARNERS, learner_named
from unless.structures.structure import Structure

PathLike = str | os.PathLike[str]
# A model with weights is written in these formats, too, by the ending of its file.
OTHER_ENDINGS = FORMATS.keys() - {".unless"}


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
        want the table again. The graphs of a canonical model (CSGS) are filed under the rows, so that
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
    if type(learned) not in (LEARNERS.get(name), UnlessClassifier):
        raise SettingError(f"{name} is not one of the learners a file can name: {', '.join(LEARNERS)}.")
    _check_rows(rows, learned.structure_)
    save_record(make_record(learned, rows=rows), path)


def _check_rows(rows: bool, structure: Structure) -> None:
    if not rows and getattr(structure, "kind", "") == "contexts":
        raise SettingError(
            "A graph for each context is filed under the rows of the table, so that it cannot be saved "
            "without rows; save its features(), or learn with a learner that keeps no contexts, such as GGS."
        )


def load(path: PathLike) -> Estimator | Structure:
    """Read a .unless file: a fitted estimator if it holds one, else the structure or model."""
    record = load_record(path)
    if record.learner is None:
        return record.structure
    try:
        is_classifier = record.learner == UnlessClassifier.__name__
        learner = UnlessClassifier() if is_classifier else learner_named(str(record.learner))()
        return restore(learner, record)
    except (UnlessError, KeyError, TypeError, ValueError) as error:
        raise FileFormatError(
            f"{os.fspath(path)!r} does not hold a learner this version knows: {str(error).rstrip('.')}."
        ) from None
