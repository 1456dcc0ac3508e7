"""What an estimator learned, as one page: thin calls downwards."""

import os
from typing import TYPE_CHECKING, Any, Literal

from unless.data.dataset import Dataset
from unless.inference.tables import read_rows
from unless.knowledge.explaining import explain_as_learned
from unless.report.build import Source
from unless.report.disclosure import Disclosure
from unless.report.whatif import n_states
from unless.report.writing import write_report

if TYPE_CHECKING:
    from unless.inference.model import LogLinearModel
    from unless.learners.estimator import Estimator

# A network of at most so many states is fitted without being asked for.
CHEAP_STATES = 4096


def report(
    learned: "Estimator",
    path: str | os.PathLike[str],
    data: object,
    network: "LogLinearModel | Literal[False] | None",
    target: str | None,
    title: str | None,
    rows: bool = True,
    min_cell: int | None = None,
) -> None:
    """Write the page of a fitted estimator."""
    table = _table(learned, data)
    if data is None:
        statements = learned._all_statements()
    else:
        statements = explain_as_learned(learned.structure_, table, learned.get_params())
    keeps_rows = Disclosure.of(rows, min_cell).keeps_rows
    if network is None and keeps_rows and n_states(learned.structure_.domain) <= CHEAP_STATES:
        network = learned.network(table)
    write_report(
        learned.structure_,
        table,
        path,
        statements=statements,
        network=network or None,
        source=source_of(learned, learned.notes_ if data is None else table.notes),
        target=target or learned.target_,
        title=title,
        rows=rows,
        min_cell=min_cell,
    )


def source_of(learned: "Estimator", notes: tuple[str, ...]) -> Source:
    """Say how an estimator learned what it knows, and what reading did to the table that is shown."""
    settings: dict[str, Any] = learned.answer_settings()
    return Source(
        learner=type(learned).__name__,
        settings=settings,
        n_tests=learned.n_tests_,
        n_distinct_tests=learned.n_distinct_tests_,
        notes=notes,
    )


def _table(learned: "Estimator", data: object) -> Dataset:
    if data is None:
        return learned._remembered("est.report(path, data=data)")
    return read_rows(learned.structure_.domain, data)
