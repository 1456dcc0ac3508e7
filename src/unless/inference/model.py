"""Features and their weights as one distribution, which answers questions, scores tables and draws rows.

What a question needs is loaded when it is asked: `make_engine` chooses the engine that answers it (exact,
Gibbs sampling or belief propagation), `scores.py` scores tables, `imputation.py` predicts and fills in what
rows hide.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from unless.data.dataset import Dataset, Rows, checked_rows
from unless.data.domain import Domain
from unless.data.showing import MOST_ROWS, html_table
from unless.errors import SettingError
from unless.inference.potentials import Potential, from_potentials, sums_of_weights, to_potentials
from unless.inference.randomness import RandomState, check_size
from unless.inference.results import Distribution, Marginals, MostProbable, check_joint, impossible
from unless.kernels.compiling import plain_if_small
from unless.runtime.memory import Memory, check_need, parse_memory
from unless.runtime.progress import Show
from unless.structures.graph import FeatureSet, Graph
from unless.structures.structure import By, ByFeatures, FeatureArrays, Indicators, Structure, StructureView
from unless.typing import Floats, Integers

if TYPE_CHECKING:
    from unless.inference.exact import ExactEngine, ExactSolver
    from unless.inference.scores import ConditionalScore


Method = Literal["auto", "exact", "gibbs", "belief"]
METHODS = ("auto", "exact", "gibbs", "belief")
Codes = Mapping[int, int]
Evidence = Mapping[str, object] | None
Settings = dict[str, Any]
Given = ParamSpec("Given")
Made = TypeVar("Made")


def eliminate_infinite_weights(
    arrays: FeatureArrays, weights: Floats, n_levels: Integers
) -> tuple[FeatureArrays, Floats]:
    """Say "this feature must hold" (+inf) as "these levels must not be" (-inf, one feature each).

    A conjunction holds where each of its conditions does, so no feature longer than one is needed.
    """
    certain = np.isposinf(weights)
    if not certain.any():
        return arrays, weights
    excluded = {
        (variable, level)
        for variable, said, equal in zip(*(array.tolist() for array in arrays.take(certain)[1:]), strict=True)
        for level in (range(int(n_levels[variable])) if equal else (said,))
        if (level == said) != equal
    }
    listed = np.array(sorted(excluded), dtype=np.int64).reshape(-1, 2)
    single = FeatureArrays.of_equals(listed[:, :1], listed[:, 1:])
    joined = FeatureArrays.joined([arrays.take(~certain), single])
    return joined, np.concatenate([weights[~certain], np.full(len(listed), -np.inf)])


def _by_size(
    answer: Callable[Concatenate["LogLinearModel", Given], Made],
) -> Callable[Concatenate["LogLinearModel", Given], Made]:
    """Choose the backend of kernels by the size of the model."""

    @wraps(answer)
    def sized(model: "LogLinearModel", *given: Given.args, **named: Given.kwargs) -> Made:
        # Sampling goes through the features many thousand times.
        n_steps = model.n_steps * (1e4 if named.get("method") == "gibbs" else 1.0)
        with plain_if_small(n_steps):
            return answer(model, *given, **named)

    return sized  # type: ignore[return-value]


class LogLinearModel(Structure):
    """p(x) = exp(sum of the weights of the features that hold in x) / Z.

    Immutable. Weight k belongs to feature k in the order of `features`. A weight of -inf makes the states in
    which its feature holds impossible; one of +inf those in which it does not. Evidence names variables and
    gives their labels, or the values the labels were made from. `show_progress` shows how far a long answer
    is: on a terminal or in a notebook (None), always or never.
    """

    def __init__(self, features: FeatureSet, weights: npt.ArrayLike, *, report: Any = None) -> None:
        try:
            values = np.array(weights, dtype=np.float64)
        except (TypeError, ValueError):
            raise SettingError("A weight is not a number; give a number for each feature.") from None
        if values.shape != (len(features),):
            raise SettingError(
                f"There are {values.size:,} weights for {len(features):,} features; give one for each."
            )
        if np.isnan(values).any():
            raise SettingError("A weight is not a number; give a number for each feature.")
        with np.errstate(over="ignore"):
            if np.isinf(np.abs(values[np.isfinite(values)]).sum()):
                raise SettingError(
                    "The weights are too large to be added up; give smaller ones, or infinities."
                )
        values.setflags(write=False)
        # `report` tells how the weights were found, where they were found here.
        self.__dict__.update(features=features, weights=values, fit_report=report)

    kind = "model"
    _noun = "A model"
    _inner = ("exact", "n_steps", "plain")
    features: FeatureSet
    weights: Floats
    fit_report: Any

    @property
    def domain(self) -> Domain:  # type: ignore[override]
        """The variables the model is about."""
        return self.features.domain

    def indicators(self, kind: Indicators = "cliques") -> FeatureSet:  # noqa: ARG002 (it has its own)
        """Return its features."""
        return self.features

    def graph_given(self, context: Evidence = None) -> Graph:
        """Return the graph of its features."""
        return self.features.graph_given(context)

    def view(self, domain: Domain, by: By = "graphs") -> StructureView:  # noqa: ARG002 (both are the same)
        """Answer where features hold; one of weight zero leaves every probability as it is."""
        return ByFeatures(self.features.arrays.take(self.weights != 0), self.domain, domain)

    def scopes_with(self, target: str) -> list[set[str]]:
        """Return the scopes of its features."""
        return self.features.scopes_with(target)

    @property
    def size(self) -> tuple[str, int]:
        """The number of features."""
        return self.features.size

    @cached_property
    def n_steps(self) -> float:
        """About how many scalar steps it takes to visit all conditions of all features in every state."""
        return math.prod(map(float, self.domain.n_levels)) * (1.0 + len(self.features.arrays.variable))

    def log_potentials(self, rows: Rows) -> Floats:
        """Return the log of the unnormalised probability of each row of codes."""
        return sums_of_weights(checked_rows(self.domain, rows), *self.plain)

    @cached_property
    def plain(self) -> tuple[FeatureArrays, Floats]:
        """The same law by features whose weights are finite or -inf."""
        return eliminate_infinite_weights(self.features.arrays, self.weights, self.domain.n_levels)

    @cached_property
    def exact(self) -> "ExactSolver":
        """The plan of exact answers, made once; `exact.cost` is what they need."""
        from unless.inference.exact import ExactSolver

        return ExactSolver(*self.plain, self.domain.n_levels)

    @_by_size
    def query(
        self,
        variables: str | Iterable[str],
        evidence: Evidence = None,
        *,
        method: Method = "auto",
        max_memory: Memory = None,
        random_state: RandomState = None,
        show_progress: Show = None,
    ) -> Distribution:
        """Return the distribution of a variable, or the joint one of several, given evidence.

        `method` is "exact", "gibbs" (sampling, which `random_state` determines), "belief" (loopy belief
        propagation) or "auto": exact where its tables fit into `max_memory`, else Gibbs sampling. The answer
        says which way was taken.
        """
        asked, codes = self._positions(variables), self._codes(evidence)
        check_joint(self.domain, asked)
        return make_engine(self, method, max_memory, random_state, show_progress).query(asked, codes)

    @_by_size
    def marginals(
        self,
        evidence: Evidence = None,
        *,
        method: Method = "auto",
        max_memory: Memory = None,
        random_state: RandomState = None,
        show_progress: Show = None,
    ) -> Marginals:
        """Return the distributions of all single variables given evidence, found in one run.

        The settings are those of `query`.
        """
        codes, way = self._codes(evidence), method if len(self.domain) else "exact"
        return make_engine(self, way, max_memory, random_state, show_progress).marginals(codes)

    @_by_size
    def map_query(
        self,
        variables: str | Iterable[str] | None = None,
        evidence: Evidence = None,
        *,
        max_memory: Memory = None,
    ) -> MostProbable:
        """Return the most probable joint assignment of some variables, or of all that evidence leaves open.

        It is a `Context` with the log of its probability given the evidence; of equals it is any one, always
        the same.
        """
        self.exact.check(max_memory, "raise max_memory=")
        asked = None if variables is None else self._positions(variables)
        return self._exact_engine.most_probable(asked, self._codes(evidence))

    @_by_size
    def log_partition(self, evidence: Evidence = None, *, max_memory: Memory = None) -> float:
        """Return the log of the sum of the potentials of all states, or of those that agree with evidence.

        Evidence of probability zero gives -inf.
        """
        self.exact.check(max_memory, "raise max_memory=")
        return self._exact_engine.log_partition(self._codes(evidence))

    @_by_size
    def probability(
        self, context: Mapping[str, object], evidence: Evidence = None, *, max_memory: Memory = None
    ) -> float:
        """Return the probability of an assignment to some variables given evidence."""
        self.exact.check(max_memory, "raise max_memory=")
        return self._exact_engine.probability(self.domain.encode(context), self._codes(evidence))

    @_by_size
    def log_likelihood(self, X: object, *, max_memory: Memory = None, show_progress: Show = None) -> Floats:
        """Return the log probability of each row of a table of labels; what a row hides is summed over."""
        from unless.inference.scores import log_likelihoods

        return log_likelihoods(self, X, max_memory, show_progress)

    def log_likelihood_codes(self, rows: npt.ArrayLike, *, max_memory: Memory = None) -> Floats:
        """Return the log probability of each row of codes, the positions of levels in their variables."""
        codes = checked_rows(self.domain, rows)
        return self.log_potentials(codes) - self._log_partition_of_all(max_memory)

    @_by_size
    def score(self, X: object, *, max_memory: Memory = None) -> float:
        """Return the mean log-likelihood of the rows of a table, in nats.

        Missing values are the level "missing" where the model has one; elsewhere they are summed over, so
        that a row counts with the probability of what it shows. Rows that show nothing are left out.
        """
        from unless.inference.scores import score

        return score(self, X, max_memory)

    @_by_size
    def conditional_marginal_log_likelihood(
        self,
        X: object,
        query: Iterable[str] | None = None,
        evidence: Iterable[str] | None = None,
        *,
        max_memory: Memory = None,
        show_progress: Show = None,
    ) -> "ConditionalScore":
        """Return the mean over rows of sum_q log P(x_q | evidence), with what each variable adds to it.

        The evidence is by default all that is not asked about; without a query every quarter of the variables
        is asked about in turn.
        """
        from unless.inference.scores import conditional_marginal_log_likelihood

        return conditional_marginal_log_likelihood(self, X, query, evidence, max_memory, show_progress)

    @_by_size
    def pseudo_log_likelihood(
        self, X: object, *, max_memory: Memory = None, show_progress: Show = None
    ) -> "ConditionalScore":
        """Return the mean over rows of sum_v log P(x_v | all others), with what each variable adds to it.

        Rows with missing values are left out of a Dataset, and refused elsewhere.
        """
        from unless.inference.scores import pseudo_log_likelihood

        return pseudo_log_likelihood(self, X, max_memory, show_progress)

    @classmethod
    def from_potentials(cls, domain: Domain, tables: Iterable[Potential]) -> "LogLinearModel":
        """Make a model of tables of potentials (names, array): each cell an indicator of weight log phi."""
        return cls(*from_potentials(domain, tables))

    def to_potentials(self) -> "list[Potential]":
        """Return one table of potentials (names, array) for each scope of features; p is their product."""
        return to_potentials(self)

    @_by_size
    def predict_proba(
        self, X: object, target: str, *, max_memory: Memory = None, show_progress: Show = None
    ) -> Floats:
        """Return, for each row, the probabilities of the levels of a target given all else the row shows.

        Missing values are holes that are summed over, even where the model has a level for them.
        """
        from unless.inference.imputation import predict_proba

        return predict_proba(self, X, target, max_memory, show_progress)

    @_by_size
    def predict(
        self, X: object, target: str, *, max_memory: Memory = None, show_progress: Show = None
    ) -> npt.NDArray[Any]:
        """Return, for each row, the most probable value of a target; of equals the first."""
        from unless.inference.imputation import predict

        return predict(self, X, target, max_memory, show_progress)

    @_by_size
    def impute(self, X: object, *, max_memory: Memory = None, show_progress: Show = None) -> Any:
        """Return a copy of a table, of the same kind, whose holes hold their most probable values.

        A column whose type cannot hold such a value comes back as text.
        """
        from unless.inference.imputation import impute

        return impute(self, X, max_memory, show_progress)

    def sample(
        self,
        n: int,
        random_state: RandomState = None,
        *,
        evidence: Evidence = None,
        method: Method = "auto",
        max_memory: Memory = None,
        backend: str | None = None,
        show_progress: Show = None,
    ) -> Any:
        """Draw rows as a frame whose columns are of the kinds they were read as.

        Those are whole numbers, other numbers, booleans, categories and text; how wide a number was, and how
        its categories were ordered, is not known any more, and dates come as text. Exact where exact
        inference fits into `max_memory`, else by Gibbs sampling; the `attrs` of a frame of pandas and the
        metadata of a table of pyarrow say which, as `method`. The frame is one of pandas if it is installed,
        else of polars, else of pyarrow, else a dict of arrays; `backend` chooses.
        """
        from unless.inference.frames import to_frame

        codes, way = self._draw(n, random_state, evidence, method, max_memory, show_progress)
        return to_frame(self.domain, codes, backend, way)

    def sample_codes(
        self,
        n: int,
        random_state: RandomState = None,
        *,
        evidence: Evidence = None,
        method: Method = "auto",
        max_memory: Memory = None,
        show_progress: Show = None,
    ) -> Dataset:
        """Draw rows as a Dataset, whose notes say which way; the order of the draws is forgotten."""
        codes, way = self._draw(n, random_state, evidence, method, max_memory, show_progress)
        note = "Drawn exactly." if way == "exact" else "Drawn by Gibbs sampling."
        return Dataset.from_codes(self.domain, codes, notes=[note])

    @_by_size
    def _draw(
        self,
        n: int,
        random_state: RandomState,
        evidence: Evidence,
        method: Method,
        max_memory: Memory,
        show: Show,
    ) -> tuple[Rows, str]:
        way = choose_method(self, method, max_memory, draws=True)
        how: Settings = {"method": way, "max_memory": max_memory, "show_progress": show}
        return sample_codes(self, n, random_state, self._codes(evidence), **how), way

    @_by_size
    def _log_partition_of_all(self, max_memory: Memory) -> float:
        self.exact.check(max_memory, "raise max_memory=")
        total = self._exact_engine.log_partition({})
        if total == -np.inf:
            raise impossible(self.domain, {})
        return total

    @property
    def _exact_engine(self) -> "ExactEngine":
        from unless.inference.exact import ExactEngine

        return ExactEngine(self)

    def _positions(self, variables: str | Iterable[str]) -> list[int]:
        """Turn one name or several into positions."""
        if not isinstance(variables, Iterable):
            raise SettingError(f"{variables!r} names no variable; give a name or a list of names.")
        names = [variables] if isinstance(variables, str) else list(variables)
        positions = [self.domain.index(name) for name in names]
        if not positions:
            raise SettingError("No variable is asked about; name one or more.")
        if len(set(positions)) != len(positions):
            raise SettingError("A variable is asked about twice; name each once.")
        return positions

    def _codes(self, evidence: Evidence) -> dict[int, int]:
        return self.domain.encode(evidence) if evidence else {}

    def _repr_html_(self) -> str:
        # The features of the largest weights, whatever their sign.
        order = np.argsort(-np.abs(self.weights), kind="stable")[:MOST_ROWS]
        chosen = np.zeros(len(self.weights), dtype=np.bool_)
        chosen[order] = True
        # The set keeps its order when some are taken.
        texts = dict(zip(np.flatnonzero(chosen).tolist(), self.features.take(chosen), strict=True))
        rows = [(str(texts[int(position)]), f"{self.weights[position]:+.3f}") for position in order]
        return html_table(repr(self)[1:-1], ("feature", "weight"), rows, more=len(self.weights) - len(rows))

    def __repr__(self) -> str:
        return f"<LogLinearModel: {len(self.features):,} features over {len(self.domain)} variables>"


class Engine(Protocol):
    """One way to answer questions about a model: variables are positions, evidence gives codes by position.

    Evidence of probability zero is refused.
    """

    def query(self, variables: list[int], evidence: Codes) -> Distribution:
        """Return the joint distribution of some variables given evidence."""

    def marginals(self, evidence: Codes) -> Marginals:
        """Return the distributions of all single variables given evidence."""

    def sample(self, n_rows: int, evidence: Codes) -> Rows:
        """Draw rows of codes given evidence."""


def make_engine(
    model: LogLinearModel,
    method: str,
    max_memory: Memory = None,
    random_state: RandomState = None,
    show_progress: bool | None = None,
    draws: bool = False,
) -> Engine:
    """Return the engine of a method; "auto" is chosen as `choose_method` does."""
    way = choose_method(model, method, max_memory, draws=draws)
    # Each engine is loaded when it is first needed: their kernels take time to load.
    if way == "gibbs":
        from unless.inference.gibbs import GibbsEngine

        return GibbsEngine(model, random_state, max_memory=max_memory, show_progress=show_progress)
    if way == "belief":
        from unless.inference.belief import BeliefEngine

        return BeliefEngine(model, show_progress=show_progress)
    from unless.inference.exact import ExactEngine

    return ExactEngine(model, random_state, show_progress)


def choose_method(model: LogLinearModel, method: str, max_memory: Memory, *, draws: bool = False) -> str:
    """Say which way is taken: exact answers where the estimate fits, else Gibbs sampling.

    `draws` tells that samples are wanted, which not all methods give.
    """
    if method not in METHODS:
        raise SettingError(f"There is no method {method!r}; use {', '.join(map(repr, METHODS))}.")
    if method == "exact":
        others = "method='gibbs'" if draws else "method='gibbs' or method='belief'"
        model.exact.check(max_memory, f"use {others}, or raise max_memory=")
    if method != "auto":
        return method
    return "exact" if model.exact.fits(max_memory) else "gibbs"


def sample_codes(
    model: LogLinearModel,
    n: int,
    random_state: RandomState,
    evidence: Codes,
    *,
    method: str,
    max_memory: Memory,
    show_progress: bool | None = None,
) -> Rows:
    """Draw rows of codes, exactly where the estimate fits, else by Gibbs sampling."""
    size, n_columns = check_size(n), len(model.domain)
    # Two bytes a cell, and as much again where the rows are put in another order.
    work = f"{size:,} rows of {n_columns:,} columns need"
    way_out = "draw fewer at a time or raise max_memory="
    check_need(4 * size * n_columns, parse_memory(max_memory), work, way_out)
    engine = make_engine(model, method, max_memory, random_state, show_progress, draws=True)
    return engine.sample(size, evidence)
