"""scikit-learn's estimator protocol, without importing scikit-learn."""

import inspect
import os
import sys
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np

from unless.data.dataset import Dataset
from unless.data.showing import html_table
from unless.errors import DataError, NotFitted, SettingError, interrupt_in
from unless.independence.design_effects import drawn_alike
from unless.learners.workplace import Workplace, check_work, describe
from unless.runtime.memory import memory_errors_told
from unless.weights.priors import Gaussian, Prior

if TYPE_CHECKING:
    from unless.inference.model import LogLinearModel
    from unless.knowledge.asking import Asked
    from unless.knowledge.statements import Statements


class Estimator:
    """Settings in the constructor, learned things with a trailing underscore.

    A learner defines `__init__`, which only stores its arguments, and `_learn(data)`, which sets
    `structure_`, `n_tests_` and `n_distinct_tests_`. One that learns more than these says with `_kept` and
    `_bring_back` how files keep it.
    """

    # Settings that cannot change the answer, and are not kept with it.
    machine_settings: ClassVar[frozenset[str]] = frozenset(
        {"n_jobs", "show_progress", "max_memory", "work_dir", "resume"}
    )

    # What files keep of the answer.
    kept_structure: ClassVar[type] = object

    structure_: Any
    # The distinct rows learned from, unless it came from a file that keeps none.
    data_: Dataset
    # The column that `statements_` are about, all of them if None.
    target_: str | None = None
    # The network that `score` asks, made when it is first asked.
    _scorer: "LogLinearModel | None" = None
    _statements: "Statements | None"
    # What ends with the learning: the hold on its folder.
    _stay: ExitStack | None = None
    n_tests_: int
    n_distinct_tests_: int

    def fit(self, X: object, y: object = None, sample_weight: Any = None) -> Self:  # noqa: ARG002
        """Learn from a Dataset, a frame, an array or a file that `unless.read` understands.

        `sample_weight` gives each row of X as many copies as it says; whole numbers only.
        """
        return self._fit(X, sample_weight)

    def _fit(self, X: object, sample_weight: Any, **beside: Any) -> Self:
        self.check_settings()
        check_work(*self._work())
        data = self._dataset(X, sample_weight)
        if not data.n_distinct:
            raise DataError("The table has no rows; there is nothing to learn from.")
        try:
            with memory_errors_told(), ExitStack() as self._stay:
                self._learn(drawn_alike(data), **beside)
        except SystemError as error:
            raise interrupt_in(error) or error from None
        finally:
            self._stay = None
        self.feature_names_in_ = np.array(data.names, dtype=object)
        self.n_features_in_ = data.n_variables
        self.notes_ = data.notes
        self.data_, self._statements, self.target_, self._scorer = data, None, None, None
        return self

    def network(
        self,
        data: object,
        prior: Prior | str | Iterable[Prior] | None = Gaussian(1.0),  # noqa: B008 (a frozen value)
        features: Literal["cliques", "pairs"] = "cliques",
        **settings: Any,
    ) -> "LogLinearModel":
        """Return a model that can be asked, sampled and scored: the structure's features with weights.

        `prior` and `settings` are those of `unless.fit_weights`; `features` is the kind that
        `CanonicalModel.features` makes. Rows with missing values are used for what they show, by EM;
        `incomplete="drop"` leaves them out.
        """
        from unless.learners.network import network

        self.check_fitted()
        settings.setdefault("n_jobs", self.get_params().get("n_jobs"))
        return network(self.structure_, data, prior, features, **settings)

    def score(self, X: object, y: object = None) -> float:  # noqa: ARG002
        """Return the mean pseudo-log-likelihood of the rows of a table, in nats: larger is better.

        It is that of `network(data, incomplete="drop")` of the rows learned from. Rows of X with missing
        values are left out, unless the rows learned from have a level for them. A level that was not seen
        there has the probability 1 / (n + k + 1), for n rows and k levels, whatever was learned; to the other
        columns of its row it is none of the levels they know.
        """
        from unless.learners.scoring import held_out_score

        return held_out_score(self, X)

    def _scoring_network(self) -> "LogLinearModel":
        """Return the network of the rows learned from, with weights."""
        if self._scorer is None:
            data = self._remembered("est.network(data).pseudo_log_likelihood(X)")
            settings = self.get_params()
            machine = {name: settings[name] for name in ("max_memory", "show_progress") if name in settings}
            # Files keep complete rows only, and a learner that comes from one must score alike.
            self._scorer = self.network(data, incomplete="drop", **machine)
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
            settings = self.get_params()
            machine = {name: settings[name] for name in ("max_memory", "show_progress") if name in settings}
            data = self._remembered("unless.explain(est.structure_, data)")
            self._statements = explain_as_learned(self._proposing(), data, settings, **machine)
        return self._statements

    def _proposing(self) -> Any:
        """Return the structure whose links may become sentences."""
        return self.structure_

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
        network: "LogLinearModel | Literal[False] | None" = None,
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
            A model with weights for the page's probabilities. None fits one where all combinations of levels
            are few; False leaves the probabilities out.
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
        from unless.learners.reporting import report

        self.check_fitted()
        report(self, path, data, network, target, title, rows, min_cell)

    def _remembered(self, way_out: str) -> Dataset:
        self.check_fitted()
        if not hasattr(self, "data_"):
            raise NotFitted(f"The file this {type(self).__name__} came from keeps no rows; call {way_out}.")
        return self.data_

    def _revived(self) -> None:
        """Settle what else follows from what a file brought back."""

    def _kept(self) -> tuple[Any, dict[str, Any]]:
        """Return what files keep of the answer: a structure and plain results, for `_bring_back`."""
        return self.structure_, {}

    def _bring_back(self, structure: Any, results: Mapping[str, Any]) -> None:  # noqa: ARG002
        if not isinstance(structure, self.kept_structure):
            kinds = type(structure).__name__, self.kept_structure.__name__
            raise SettingError(f"its structure is a {kinds[0]} and no {kinds[1]}")
        self.structure_, self._statements = structure, None

    def _dataset(self, X: object, sample_weight: Any) -> Dataset:
        if isinstance(X, Dataset) and sample_weight is None:
            return X
        shown = getattr(self, "show_progress", None)
        if sample_weight is None:
            from unless.data.read import read

            return read(X, show_progress=shown)
        from unless.data.weighting import read_weighted

        return read_weighted(X, sample_weight, show_progress=shown)

    def _work(self) -> tuple[Any, Any]:
        settings = self.get_params()
        return settings.get("work_dir"), settings.get("resume", False)

    def _workplace(self, data: Dataset, *beside: Dataset) -> Workplace | None:
        """Return where finished parts of the work are kept, if they are; `beside` shapes the answer too."""
        work_dir, resume = self._work()
        if work_dir is None:
            return None
        work = describe(type(self).__name__, self.answer_settings(), beside)
        return Workplace.enter(work_dir, resume, work, data, self._stay)

    def _take_up(self, place: Workplace | None) -> bool:
        """Bring back an answer that was finished before; for learners that do more than join shards."""
        record = None if place is None else place.read_answer()
        if record is None:
            return False
        results: Mapping[str, Any] = record.results
        self._bring_back(record.structure, results)
        self.n_tests_, self.n_distinct_tests_ = results["n_tests"], results["n_distinct"]
        return True

    def _lay_down(self, place: Workplace | None) -> None:
        """Keep a finished answer."""
        if place is not None:
            structure, results = self._kept()
            costs = {"n_tests": self.n_tests_, "n_distinct": self.n_distinct_tests_}
            place.keep_answer(structure, {**results, **costs})

    def check_settings(self) -> None:
        """Refuse settings that are wrong whatever the table."""

    def _learn(self, data: Dataset) -> None:
        raise NotImplementedError(f"{type(self).__name__} does not say how it learns.")

    @classmethod
    def default_settings(cls) -> dict[str, Any]:
        """Return the constructor's arguments with their defaults, in their order."""
        parameters = inspect.signature(cls).parameters.values()
        return {parameter.name: parameter.default for parameter in parameters}

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002
        """Return the settings by name."""
        return {name: getattr(self, name) for name in self.default_settings()}

    def set_params(self, **settings: Any) -> Self:
        """Change settings by name."""
        for name, value in settings.items():
            if name not in self.default_settings():
                known = ", ".join(self.default_settings())
                raise SettingError(f"{type(self).__name__} has no setting {name!r}; it has {known}.")
            setattr(self, name, value)
        return self

    def answer_settings(self) -> dict[str, Any]:
        """Return the settings that shape the answer: those that are saved with it."""
        return {name: value for name, value in self.get_params().items() if name not in self.machine_settings}

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
        # What other parts of the library use is no help to people.
        inner = (
            "answer_settings", "check_fitted", "check_settings", "default_settings", "kept_structure",
            "machine_settings",
        )  # fmt: skip
        return [name for name in super().__dir__() if not name.startswith("_") and name not in inner]

    def _repr_html_(self) -> str:
        if not self.__sklearn_is_fitted__():
            return html_table(repr(self), (), (), ["It has not learned yet; call fit(data)."])
        cost = f"{self.n_tests_:,} questions asked of the table, {self.n_distinct_tests_:,} of them different"
        return html_table(repr(self), (), (), [cost, *self.notes_]) + str(self.structure_._repr_html_())

    def __repr__(self) -> str:
        defaults = self.default_settings()
        shown = [
            f"{name}={value!r}"
            for name, value in self.get_params(deep=False).items()
            if not _same(value, defaults[name])
        ]
        return f"{type(self).__name__}({', '.join(shown)})"


def _not_fitted(sentence: str) -> NotFitted:
    """Make the error that scikit-learn expects as well, where it is in use."""
    known = sys.modules.get("sklearn.exceptions")
    if known is None:
        return NotFitted(sentence)
    # Another process, to which the error may be sent, knows the plain one.
    members = {"__reduce__": lambda error: (NotFitted, error.args)}
    kind: type[NotFitted] = type("NotFitted", (NotFitted, known.NotFittedError), members)
    return kind(sentence)


def _same(value: object, default: object) -> bool:
    # Arrays compare element by element, and are never a default; a file gives lists back for tuples.
    if isinstance(value, list) and isinstance(default, tuple):
        value = tuple(value)
    return type(value) is type(default) and bool(value == default)
