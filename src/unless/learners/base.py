"""What all learners have in common: settings, fit, what is said of the answer, and how files keep it.

`Estimator` follows scikit-learn's protocol without importing scikit-learn. `Learner` adds the settings of the
machine and runs `_learn` with what they ask for.
"""

import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, dataclass_transform

import numpy as np
import numpy.typing as npt

from unless import __version__
from unless.data.dataset import Dataset, regression_steps
from unless.data.domain import Domain, Variable
from unless.data.showing import html_table
from unless.errors import DataError, NotFitted, SettingError, TooLarge, interrupt_in
from unless.formats.record import Record, Value, load_record, save_record
from unless.independence.design_effects import drawn_alike
from unless.kernels.compiling import plain_if_small
from unless.learners.settings import HasSettings, check_folder, check_memory, check_n_jobs, learned, setting
from unless.runtime.checkpoints import (
    Arrays,
    Checkpoint,
    CheckpointStore,
    InputCodec,
    once,
    text_array,
    work_stamp,
)
from unless.runtime.compilation import compile_ahead
from unless.runtime.interrupts import CancelToken, n_workers
from unless.runtime.memory import check_need, memory_errors_explained, parse_memory
from unless.runtime.parallel import InMemory, Made, OnDisk, run_shards, share_input, shares_memory
from unless.runtime.progress import Bar, progress
from unless.weights.priors import Gaussian, Prior, parse_prior

if TYPE_CHECKING:
    from unless.inference.model import LogLinearModel
    from unless.knowledge.asking import Asked
    from unless.knowledge.statements import Statements

# Variables are learned in so many parts where each is kept.
MOST_PARTS = 64


@dataclass_transform(eq_default=False, kw_only_default=True, field_specifiers=(setting, learned))
class Estimator(HasSettings):
    """Settings in the constructor, learned things with a trailing underscore.

    A subclass declares its settings as fields (see `settings.py`); the constructor stores them, in the order
    of the class, then of its base. One that learns more than a structure says with `_to_record` and
    `_from_record` how files keep it.
    """

    # What files keep of the answer.
    kept_structure: ClassVar[type] = object
    # Whether a checkpoint store keeps the whole answer, because it takes more than joining shards.
    saves_answer: ClassVar[bool] = False
    # What `n_tests_` counts, in words: a verb and a noun.
    _counts: ClassVar[tuple[str, str]] = ("asked", "test")

    structure_: Any
    # The distinct rows learned from, unless it came from a file that keeps none.
    data_: Dataset
    # The column that `statements_` are about, all of them if None.
    target_: str | None = None
    # The network that `score` asks, made when it is first asked.
    _scorer: "LogLinearModel | None" = None
    _statements: "Statements | None"
    notes_: tuple[str, ...]
    feature_names_in_: npt.NDArray[Any]
    n_features_in_: int
    n_tests_: int
    # None where the work was cut into shards that may ask the same: then at most so many are distinct.
    n_distinct_tests_: int | None
    max_distinct_tests_: int | None = None

    def fit(self, X: object, y: object = None, sample_weight: Any = None) -> Self:
        """Learn from a table; each subclass says from which."""
        raise NotImplementedError(f"{type(self).__name__} does not say how it learns.")

    def network(
        self,
        data: object,
        prior: Prior | str | Iterable[Prior] | None = Gaussian(1.0),  # noqa: B008 (a frozen value)
        features: Literal["cliques", "pairs", "subcliques"] = "cliques",
        **settings: Any,
    ) -> "LogLinearModel":
        """Return a model that can be asked, sampled and scored: the structure's features with weights.

        `prior` and `settings` are those of `unless.fit_weights`; `features` is the kind that
        `CanonicalModel.features` makes. Rows with missing values are used for what they show, by EM;
        `incomplete="drop"` leaves them out.
        """
        from unless.structures.structure import features_of
        from unless.weights.fit import fit_weights

        self.check_fitted()
        settings.setdefault("n_jobs", getattr(self, "n_jobs", None))
        return fit_weights(features_of(self.structure_, features), data, prior, **settings)

    def score(self, X: object, y: object = None) -> float:  # noqa: ARG002
        """Return the mean pseudo-log-likelihood of the rows of a table, in nats: larger is better.

        It is that of `network(data, incomplete="drop")` of the rows learned from. Rows of X with missing
        values are left out, unless the rows learned from have a level for them. A level that was not seen
        there has the probability 1 / (n + k + 1), for n rows and k levels, whatever was learned; to the other
        columns of its row it is none of the levels they know.
        """
        from unless.learners.scoring import held_out_score

        data = self._remembered("est.network(data).pseudo_log_likelihood(X)")
        return held_out_score(self._scoring_network, data, X, type(self).__name__, **self._machine())

    def _scoring_network(self) -> "LogLinearModel":
        """Return the network of the rows learned from, with weights."""
        if self._scorer is None:
            data = self._remembered("est.network(data).pseudo_log_likelihood(X)")
            # Files keep complete rows only, and a learner that comes from one must score alike.
            self._scorer = self.network(data, incomplete="drop", **self._machine())
        return self._scorer

    @property
    def statements_(self) -> "Statements":
        """What was learned, in sentences with evidence from the same table (see `unless.explain`).

        Of one column, if `target_` names one: what matters most for it first. A file brings them back as
        they were saved.
        """
        everything = self._all_statements()
        return everything if self.target_ is None else everything.about_column(self.target_)

    def _all_statements(self) -> "Statements":
        from unless.knowledge.explaining import explain_as_learned

        self.check_fitted()
        if self._statements is None:
            data = self._remembered("unless.explain(est.structure_, data)")
            proposed = self._proposing(self.structure_)
            self._statements = explain_as_learned(proposed, data, vars(self), **self._machine())
        return self._statements

    @classmethod
    def _proposing(cls, structure: Any) -> Any:
        """Return the structure whose links may become sentences where this learner has learned one."""
        return structure

    def ask(
        self,
        a: str,
        b: str,
        *,
        given: Iterable[str] = (),
        context: Mapping[str, object] | None = None,
        data: object = None,
    ) -> "Asked":
        """Ask the data and the structure whether a and b are independent given some variables in a context.

        `data` is the table to ask, if it is not the one learned from.
        """
        from unless.knowledge.asking import ask

        table = self._remembered("est.ask(..., data=data)") if data is None else data
        shared = {name: value for name, value in self.get_params().items() if name in ("alpha", "effect")}
        return ask(self.structure_, table, a, b, given=given, context=context, **shared)

    def report(
        self,
        path: str | os.PathLike[str],
        *,
        data: object = None,
        network: "LogLinearModel | bool | None" = None,
        target: str | None = None,
        title: str | None = None,
        rows: bool = True,
        min_cell: int | None = None,
    ) -> None:
        """Write what was learned as one HTML page that needs no network and no server.

        Parameters
        ----------
        data
            The table to explain it by, if it is not the one learned from.
        network
            A model with weights, for the page's probabilities under "what if"; True fits one, as
            `network(data)` does. Without it, and with False, the page says how to have them.
        target
            Keep to what matters for this column, most first; that of `target_` if there is one.
        title
            The title of the page.
        rows
            False keeps the rows of the table out of the file, and all that could be them: tables of counts,
            and the probabilities of a network.
        min_cell
            Counts below this are not in the file, and others are rounded to multiples of it; no rows are
            kept. docs/limits.md states the rule.
        """
        from unless.knowledge.explaining import explain_as_learned
        from unless.report.writing import Provenance, write_report

        self.check_fitted()
        if data is None:
            table = self._remembered("est.report(path, data=data)")
            statements = self._all_statements()
        else:
            from unless.inference.tables import read_rows

            table = read_rows(self.structure_.domain, data)
            statements = explain_as_learned(self._proposing(self.structure_), table, vars(self))
        write_report(
            self.structure_,
            table,
            path,
            statements=statements,
            network=network,
            source=Provenance(
                learner=type(self).__name__,
                settings=self.answer_settings(),
                n_tests=self.n_tests_,
                n_distinct_tests=self._distinct_tests(),
                notes=self.notes_ if data is None else table.notes,
            ),
            target=target or self.target_,
            title=title,
            rows=rows,
            min_cell=min_cell,
        )

    def _machine(self) -> dict[str, Any]:
        """Return the settings of the machine that other functions have as well."""
        return {name: getattr(self, name) for name in ("max_memory", "show_progress")}

    def _remembered(self, way_out: str) -> Dataset:
        self.check_fitted()
        if not hasattr(self, "data_"):
            raise NotFitted(f"The file this {type(self).__name__} came from keeps no rows; call {way_out}.")
        return self.data_

    def _restored(self) -> None:
        """Set what else follows from the record of a file."""

    def _to_record(self) -> tuple[Any, dict[str, Any]]:
        """Return what files keep of the answer: a structure and plain results, for `_from_record`."""
        return self.structure_, {}

    def _from_record(self, structure: Any, results: Mapping[str, Any]) -> None:  # noqa: ARG002
        if not isinstance(structure, self.kept_structure):
            kinds = type(structure).__name__, self.kept_structure.__name__
            raise SettingError(f"its structure is a {kinds[0]} and no {kinds[1]}")
        self.structure_, self._statements = structure, None

    def check_fitted(self) -> None:
        """Raise `NotFitted` unless `fit` was called."""
        if not self.__sklearn_is_fitted__():
            raise _not_fitted(f"This {type(self).__name__} has not learned yet; call fit(data) first.")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "structure_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            input_tags=InputTags(categorical=True, string=True, allow_nan=False),
        )

    def __dir__(self) -> list[str]:
        # Users need not see what other parts of the library call.
        inner = (
            "answer_settings", "check_fitted", "check_settings", "default_settings", "kept_structure",
            "saves_answer",
        )  # fmt: skip
        return [name for name in super().__dir__() if not name.startswith("_") and name not in inner]

    def _repr_html_(self) -> str:
        if not self.__sklearn_is_fitted__():
            return html_table(repr(self), (), (), ["It has not learned yet; call fit(data)."])
        cost = f"{self.n_tests_:,} questions asked of the table, {self._distinct_tests()} of them different"
        return html_table(repr(self), (), (), [cost, *self.notes_]) + str(self.structure_._repr_html_())

    def _distinct_tests(self) -> str:
        """Write how many questions were distinct, or at most how many."""
        exact = self.n_distinct_tests_
        return f"at most {self.max_distinct_tests_:,}" if exact is None else f"{exact:,}"


@dataclass(eq=False)
class Run:
    """One fit, as the settings of the machine ask for it: its memory, workers, bar and checkpoints.

    `Learner.fit` makes it, and a learner passes it on to whatever works. Without settings it works in one
    thread, without a bar and without a store.
    """

    max_memory: int | str | None = None
    n_jobs: int | None = 1
    open_store: Callable[[], CheckpointStore | None] = lambda: None
    bar: Bar = field(default_factory=Bar)
    # What the estimate of the learner takes of the memory.
    bytes_needed: int = 0

    @cached_property
    def store(self) -> CheckpointStore | None:
        """Where finished parts are kept, opened when it is first used; None without `work_dir=`."""
        return self.open_store()

    @cached_property
    def max_bytes(self) -> int:
        """The memory that the work may take."""
        return parse_memory(self.max_memory)

    @property
    def bytes_left(self) -> int:
        """The memory that the estimate leaves for what the learner remembers."""
        return self.max_bytes - self.bytes_needed

    @cached_property
    def n_workers(self) -> int:
        """How many workers there are, here or on the cluster that the user chose."""
        return 1 if self.n_jobs == 1 else n_workers(self.n_jobs)

    @property
    def n_sharing_memory(self) -> int:
        """How many workers share the memory of this process."""
        return self.n_workers if shares_memory() else 1

    def steps(self, n_steps: int | None, stage: str = "", n_ticks: int | None = None) -> CancelToken:
        """Begin a stage of so many steps, None if unknown; each tick of the token is one of them.

        Where it ticks another number of times, `n_ticks` says how often.
        """
        self.bar.begin(stage, n_steps)
        n_steps = 1 if n_steps is None else n_steps
        return CancelToken(self.bar, n_steps, n_steps if n_ticks is None else n_ticks)

    @property
    def is_kept(self) -> bool:
        """Whether finished parts are kept; then the table alone decides how the work is cut."""
        return self.store is not None

    def cut(self, n: int, n_parts: int) -> list[range]:
        """Cut n variables into so many parts, or as many as are kept."""
        n_parts = min(n, MOST_PARTS if self.is_kept else n_parts)
        return [range(begin, n, n_parts) for begin in range(n_parts)]

    def share(
        self, made: Made, make: Callable[..., Made], data: Dataset, *given: Any
    ) -> InMemory[Made] | OnDisk[Made]:
        """Pass on what all parts of the work read, which is `make(data, *given)` (see `share_input`)."""
        return share_input(made, self.store, make, data, *given)

    def shards(
        self, work: Callable[..., Arrays], tasks: Sequence[Sequence[Any]], **settings: Any
    ) -> Sequence[Arrays]:
        """Do independent parts of the work, or read those that are kept (see `run_shards`)."""
        n_jobs = 1 if len(tasks) == 1 else min(self.n_workers, len(tasks))
        return run_shards(work, tasks, n_jobs=n_jobs, store=self.store, **settings)

    def once(self, name: str, make: Callable[[], Arrays], *is_final: Callable[[Arrays], bool]) -> Arrays:
        """Do a stage of the work, or read what is kept of it (see `once`)."""
        return once(self.store, name, make, *is_final)

    def checkpoint(self, name: str) -> Checkpoint:
        """Return where the state of work in steps is kept."""
        return Checkpoint(self.store, name)


class Learner(Estimator):
    """An estimator that learns a structure: `_learn` sets `structure_`, `n_tests_` and `n_distinct_tests_`.

    `_bytes_needed` estimates the memory that the work takes: too large a table is refused before any work.

    Parameters
    ----------
    max_memory
        What the work may take, in bytes or as a text such as "2 GB"; it is refused where an estimate exceeds
        it. None means 60 % of what is free, at most 4 GiB.
    n_jobs
        Number of workers, -1 for all cores; None means 1, or what joblib's `parallel_config` says. The answer
        is the same.
    work_dir, resume
        A folder that keeps finished parts of the work; `resume=True` goes on from there.
    show_progress
        Whether to draw a progress bar; None draws it on a terminal or in a notebook.
    """

    # What is refused, for n variables and m distinct rows: the beginning of a sentence.
    _work: ClassVar[str] = ""
    # How much more work it is than regressions of every column on the others.
    _relative_cost: ClassVar[float] = 1.0
    max_memory: int | str | None = setting(default=None, check=check_memory, machine=True)
    n_jobs: int | None = setting(default=None, check=check_n_jobs, machine=True)
    work_dir: str | os.PathLike[str] | None = setting(default=None, check=check_folder, machine=True)
    resume: bool = setting(default=False, machine=True)
    show_progress: bool | None = setting(default=None, machine=True)

    def fit(self, X: object, y: object = None, sample_weight: Any = None) -> Self:  # noqa: ARG002
        """Learn from a Dataset, a frame, an array or a file that `unless.read` understands.

        `sample_weight` gives each row of X as many copies as it says; whole numbers only.
        """
        return self._fit(X, sample_weight)

    def check_settings(self) -> None:
        """Refuse settings that are wrong whatever the table."""
        super().check_settings()
        if self.resume and self.work_dir is None:
            raise SettingError(
                "resume=True needs the folder of the work to go on with; give it as work_dir=."
            )

    def _bytes_needed(self, data: Dataset, run: Run) -> int:  # noqa: ARG002
        """Estimate the memory that learning from a table takes."""
        return 0

    def _learn(self, data: Dataset, run: Run, *beside: Dataset) -> None:
        raise NotImplementedError

    def _fit(self, X: object, sample_weight: Any, *beside: object) -> Self:
        """Learn from a table, and tables beside it that shape the answer."""
        self.check_settings()
        data = self._dataset(X, sample_weight)
        if not data.n_distinct:
            raise DataError("The table has no rows; there is nothing to learn from.")
        try:
            with memory_errors_explained(), ExitStack() as stack:
                table = data if data.design is None else drawn_alike(data)
                # In the order of its columns, in which a table without names would have them.
                tables = [self._read_beside(table.domain, one) for one in beside if one is not None]
                self._drive(table, tables, stack)
        except SystemError as error:
            # numba raises this in place of a KeyboardInterrupt that came while it called a kernel.
            raise interrupt_in(error) or error from None
        self.feature_names_in_ = np.array(data.names, dtype=object)
        self.n_features_in_ = data.n_variables
        self.notes_ = data.notes
        self.data_, self._statements, self.target_, self._scorer = data, None, None, None
        return self

    def _drive(self, data: Dataset, beside: Sequence[Dataset], stack: ExitStack) -> None:
        """Learn, or read the answer from the store if it is there."""
        run = Run(self.max_memory, self.n_jobs, lambda: self._open_store(stack, data, *beside))
        kept = run.store if self.saves_answer else None
        if kept is not None and self._restore(kept):
            return
        run.bytes_needed = self._bytes_needed(data, run)
        work = self._work.format(n=data.n_variables, m=data.n_distinct)
        check_need(run.bytes_needed, run.max_bytes, f"{work} would need about")
        name, n_steps = type(self).__name__, regression_steps(data) * self._relative_cost
        with plain_if_small(n_steps, name) as is_first:
            if is_first:
                compile_ahead(name, self.show_progress)
            with progress(name, self.show_progress) as run.bar:
                self._learn(data, run, *beside)
        if kept is not None:
            self._checkpoint(kept)

    def _read_beside(self, domain: Domain, X: object) -> Dataset:
        # Imported where it is needed, like all that reads tables: a learner should be there at once.
        from unless.inference.tables import read_rows

        return read_rows(domain, X, self.show_progress)

    def _dataset(self, X: object, sample_weight: Any) -> Dataset:
        if isinstance(X, Dataset) and sample_weight is None:
            return X
        if sample_weight is None:
            from unless.data.read import read

            return read(X, show_progress=self.show_progress)
        from unless.data.weighting import read_weighted

        return read_weighted(X, sample_weight, show_progress=self.show_progress)

    def _open_store(self, stack: ExitStack | None, *tables: Dataset) -> CheckpointStore | None:
        """Return where finished parts of the work are kept, if they are, locked until the end of `stack`."""
        if self.work_dir is None:
            return None
        digests = [table_digest(table) for table in tables]
        stamp = work_stamp(__version__, type(self).__name__, self.answer_settings(), *digests)
        return CheckpointStore.enter(self.work_dir, self.resume, stamp, TABLES, stack)

    def _restore(self, store: CheckpointStore) -> bool:
        """Read an answer that was finished before, if it is there."""
        record = store.read_answer(_read_answer)
        if record is None:
            return False
        results: Mapping[str, Any] = record.results
        self._from_record(record.structure, results)
        self.n_tests_, self.n_distinct_tests_ = results["n_tests"], results["n_distinct"]
        self.max_distinct_tests_ = results.get("max_distinct")
        return True

    def _checkpoint(self, store: CheckpointStore) -> None:
        """Save a finished answer."""
        structure, results = self._to_record()
        costs = {
            "n_tests": self.n_tests_,
            "n_distinct": self.n_distinct_tests_,
            "max_distinct": self.max_distinct_tests_,
        }
        record = Record(structure, settings={"stamp": store.stamp}, results={**results, **costs})
        store.write_answer(lambda path: save_record(record, path, follow_links=False))


def _not_fitted(sentence: str) -> NotFitted:
    """Make the error that scikit-learn expects as well, where it is in use."""
    known = sys.modules.get("sklearn.exceptions")
    if known is None:
        return NotFitted(sentence)
    # Another process, to which the error may be sent, knows the plain one.
    members = {"__reduce__": lambda error: (NotFitted, error.args)}
    kind: type[NotFitted] = type("NotFitted", (NotFitted, known.NotFittedError), members)
    return kind(sentence)


def make_record(learned: Estimator, *, rows: bool = True, statements: bool = True) -> Record:
    """Say what a fitted estimator learned, how and from what, in plain values."""
    from unless.knowledge.records import statements_to_record

    settings = {setting: _plain(value) for setting, value in learned.answer_settings().items()}
    structure, more = learned._to_record()
    results: dict[str, Value] = {
        "n_tests": learned.n_tests_,
        "n_distinct_tests": learned.n_distinct_tests_,
        **(
            {} if learned.max_distinct_tests_ is None else {"max_distinct_tests": learned.max_distinct_tests_}
        ),
        "notes": list(learned.notes_),
        **more,
        **({} if learned.target_ is None else {"target": learned.target_}),
    }
    table: Dataset | None = getattr(learned, "data_", None) if rows else None
    if table is not None:
        # Files keep no weights.
        table = drawn_alike(table)
    said = _statements(learned) if statements else None
    kept = None if said is None else statements_to_record(said, with_tables=rows)
    return Record(structure, type(learned).__name__, settings, results, table, kept)


def _statements(learned: Estimator) -> "Statements | None":
    """Return what is said, if it can be: a structure too large to explain is kept all the same."""
    try:
        return learned._all_statements()
    except (TooLarge, NotFitted):
        return None


def restore(learner: Estimator, record: Record) -> Estimator:
    """Give an estimator the settings and the answer of a record, and return it."""
    from unless.knowledge.records import statements_from_record

    learner.set_params(**{name: _rich(name, value) for name, value in record.settings.items()})
    learner.check_settings()
    learner._from_record(record.structure, record.results)
    learner.n_tests_ = _number(record, "n_tests")
    if "max_distinct_tests" in record.results:
        learner.n_distinct_tests_, learner.max_distinct_tests_ = None, _number(record, "max_distinct_tests")
    else:
        learner.n_distinct_tests_ = _number(record, "n_distinct_tests")
    notes = record.results.get("notes")
    if not isinstance(notes, list):
        raise SettingError("its notes are not a list")
    learner.notes_ = tuple(map(str, notes))
    if record.table is not None:
        learner.data_ = replace(record.table, notes=learner.notes_)
    if record.statements is not None:
        learner._statements = statements_from_record(record.statements, record.domain)
    learner.target_ = _target(record)
    learner.feature_names_in_ = np.array(record.domain.names, dtype=object)
    learner.n_features_in_ = len(record.domain)
    learner._restored()
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


def table_digest(data: Dataset) -> str:
    """Return a fingerprint of a table."""
    digest = sha256(_describe_variables(data).encode())
    digest.update(np.ascontiguousarray(data.rows, dtype="<u2").data)
    digest.update(np.ascontiguousarray(data.counts, dtype="<i8").data)
    return digest.hexdigest()


def _table_arrays(data: Dataset) -> Arrays:
    return {"rows": data.rows, "counts": data.counts, "variables": text_array(_describe_variables(data))}


def _read_table(content: Arrays) -> Dataset:
    variables = json.loads(content["variables"].tobytes())
    domain = Domain(tuple(Variable(name, tuple(levels)) for name, levels in variables))
    return Dataset(domain, content["rows"], content["counts"])


def _describe_variables(data: Dataset) -> str:
    return json.dumps([[variable.name, variable.levels] for variable in data.domain])


# How a store keeps the table that workers of other processes read.
TABLES = InputCodec(table_digest, _table_arrays, _read_table)


def _read_answer(path: Path) -> tuple[object, Record]:
    record = load_record(path)
    return record.settings.get("stamp"), record
