"""How probable a table is: log-likelihoods, those of a few variables given the rest, pseudo-likelihood."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from unless.data.dataset import Dataset, checked_rows
from unless.data.showing import html_table
from unless.errors import SettingError, TooLarge
from unless.inference.imputation import hidden_marginals
from unless.inference.potentials import sums_of_weights
from unless.inference.pseudo_likelihood import Conditionals
from unless.inference.tables import (
    HOLE,
    incomplete_rows,
    nothing_to_score,
    read_cells,
    read_incomplete,
    rows_to_score,
)
from unless.runtime.memory import Memory, show_memory
from unless.runtime.progress import Show, showing_share, within
from unless.structures.structure import FeatureArrays
from unless.typing import Bools, Floats, Integers

if TYPE_CHECKING:
    from unless.inference.model import LogLinearModel

# Davis and Domingos (2010) ask about a quarter of the variables at a time.
_N_GROUPS = 4
# Stands for an infinite weight: dwarfs every sum of finite ones, and can be subtracted from itself.
_HUGE = 1e100


@dataclass(frozen=True)
class ConditionalScore:
    """A mean over rows, in nats, with what each variable adds to it."""

    value: float
    by_variable: Mapping[str, float]
    n_rows: int

    def __float__(self) -> float:
        return self.value

    def _repr_html_(self) -> str:
        rows = [(name, f"{value:.4f}") for name, value in self.by_variable.items()]
        title = f"{self.value:.6f} nats a row, {self.n_rows:,} rows"
        return html_table(title, ("variable", "adds"), rows)


def score(model: "LogLinearModel", X: object, max_memory: Memory = None) -> float:
    """Return the mean log-likelihood of the rows of a table, in nats.

    Of a row with missing values it is that of what the row shows; rows that show nothing are left out.
    """
    data = read_incomplete(model.domain, X)
    cells, counts, _ = incomplete_rows(data)
    if not data.n_rows + len(counts):
        raise nothing_to_score()
    total = _log_partition(model, max_memory)
    logs = model.log_potentials(data.rows) - total
    if not len(counts):
        return float(np.average(logs, weights=data.counts))
    shown, _ = model.exact.posteriors(cells, marginals=False)
    every = np.concatenate([logs, shown - total])
    return float(np.average(every, weights=np.concatenate([data.counts, counts])))


def log_likelihoods(
    model: "LogLinearModel", X: object, max_memory: Memory = None, show_progress: Show = None
) -> Floats:
    """Return the log-likelihood of each row of a table, in its order; what a row hides is summed over.

    A Dataset, which knows no order of rows, gives those of its distinct ones.
    """
    cells = read_cells(model.domain, X, show_progress)
    total = _log_partition(model, max_memory)
    whole = (cells != HOLE).all(axis=1)
    logs, share = np.empty(len(cells)), np.count_nonzero(whole) / max(1, len(cells))
    with showing_share("Scoring", show_progress, "rows") as look:
        codes = checked_rows(model.domain, cells[whole])
        logs[whole] = sums_of_weights(codes, *model.plain, within(look, 0.0, share))
        rest = within(look, share, 1.0)
        logs[~whole], _ = model.exact.posteriors(cells[~whole], marginals=False, look=rest)
    return logs - total


def conditional_marginal_log_likelihood(
    model: "LogLinearModel",
    X: object,
    query: Iterable[str] | None = None,
    evidence: Iterable[str] | None = None,
    max_memory: Memory = None,
    show_progress: Show = None,
) -> ConditionalScore:
    """Return the mean over rows of sum_q log P(x_q | x_E), q in the query and E the evidence.

    The evidence is by default all that is not asked about. Without a query every quarter of the variables, in
    column order, is asked about in turn.
    """
    data = rows_to_score(model.domain, X, show_progress)
    if query is None and evidence is not None:
        raise SettingError("Evidence is given but no query; name the variables to ask about with query=.")
    columns = np.arange(len(model.domain))
    groups = np.array_split(columns, _N_GROUPS) if query is None else [_positions(model, query)]
    shown = None if evidence is None else set(_positions(model, evidence).tolist())
    sums: dict[str, float] = {}
    with showing_share("Scoring", show_progress, "rows") as look:
        for number, group in enumerate(groups):
            cells = data.rows.astype(np.int64)
            hidden = group if shown is None else [v for v in columns.tolist() if v not in shown or v in group]
            cells[:, hidden] = HOLE
            part = within(look, number / len(groups), (number + 1) / len(groups))
            found = hidden_marginals(model, cells, group.tolist(), max_memory, part)
            for position, marginals in zip(group.tolist(), found, strict=True):
                probabilities = marginals[np.arange(len(cells)), data.rows[:, position]]
                with np.errstate(divide="ignore"):
                    mean = float(np.average(np.log(probabilities), weights=data.counts))
                sums[model.domain.names[position]] = mean
    return ConditionalScore(float(sum(sums.values())), sums, data.n_rows)


def _positions(model: "LogLinearModel", names: Iterable[str]) -> Integers:
    listed = [names] if isinstance(names, str) else list(names)
    return np.array([model.domain.index(name) for name in listed], dtype=np.int64)


def _log_partition(model: "LogLinearModel", max_memory: Memory) -> float:
    if not model.exact.fits(max_memory):
        raise TooLarge(
            f"A log-likelihood needs the exact partition function, whose tables would take about "
            f"{show_memory(model.exact.cost.n_bytes)}; score by pseudo_log_likelihood or by "
            "conditional_marginal_log_likelihood, or raise max_memory=."
        )
    return model._log_partition_of_all(max_memory)


def pseudo_log_likelihood(
    model: "LogLinearModel", X: object, max_memory: Memory = None, show_progress: Show = None
) -> ConditionalScore:
    """Return the mean over rows of the sum over variables of log P(x_v | all others), in nats.

    Needs no partition function, so it is cheap for every model. A row that the model excludes gives -inf, to
    all the variables of what excludes it.
    """
    data = rows_to_score(model.domain, X, show_progress)
    features, weights = model.plain
    finite = np.maximum(weights, -_HUGE)
    with showing_share("Scoring", show_progress, "variables") as look:
        # Most of the time goes into putting rows together.
        laid_out = Conditionals.of(
            features, data, max_memory=max_memory, once=True, look=within(look, 0.0, 0.7)
        )
        losses = laid_out.losses(finite, within(look, 0.7, 1.0))
    means = -losses / data.n_rows
    if (weights == -np.inf).any():
        for variable in _absorbed_by_infinity(features, weights):
            told, some = _with_levels_apart(features, weights, variable, int(model.domain.n_levels[variable]))
            losses = Conditionals.of(told, data, max_memory=max_memory, once=True).losses(some)
            means[variable] = -losses[variable] / data.n_rows
        means[_excluded(model, data)] = -np.inf
    by_variable = dict(zip(model.domain.names, means.tolist(), strict=True))
    return ConditionalScore(float(means.sum()), by_variable, data.n_rows)


def _absorbed_by_infinity(features: FeatureArrays, weights: Floats) -> list[int]:
    """List the variables of which a feature of weight -inf excludes all but several levels.

    "Not a, not b" is counted as an advantage of a and b, in which their own weights would be lost.
    """
    feature = features.owner
    named = ~features.equal & (weights[feature] == -np.inf)
    again = named[1:] & named[:-1] & (feature[1:] == feature[:-1])
    again &= features.variable[1:] == features.variable[:-1]
    return [int(variable) for variable in np.unique(features.variable[1:][again])]


def _with_levels_apart(
    features: FeatureArrays, weights: Floats, variable: int, n_levels: int
) -> tuple[FeatureArrays, Floats]:
    """Return the features of a variable, those of weight -inf once for each level of it they exclude."""
    told, finite = [], []
    for literals, weight in zip(features.literals(), weights.tolist(), strict=True):
        others = [literal for literal in literals if literal[0] != variable]
        mentioned = [literal for literal in literals if literal[0] == variable]
        if weight == -np.inf and mentioned and not mentioned[0][2]:
            allowed = {level for _, level, _ in mentioned}
            apart = [[*others, (variable, level, True)] for level in range(n_levels) if level not in allowed]
            told += apart
            finite += [-_HUGE] * len(apart)
        elif mentioned:
            told.append([*literals])
            finite.append(max(weight, -_HUGE))
    return FeatureArrays.of(told), np.array(finite)


def _excluded(model: "LogLinearModel", data: Dataset) -> Bools:
    """Tell of each variable whether it is in a feature of weight -inf that holds in some row."""
    features, weights = model.plain
    rows = data.rows[np.isneginf(model.log_potentials(data.rows))]
    excluded = np.zeros(len(model.domain), dtype=np.bool_)
    forbidden = features.take(weights == -np.inf)
    for variable in np.unique(forbidden.variable).tolist() if len(rows) else ():
        some = forbidden.take(forbidden.with_any(forbidden.variable == variable))
        sums = sums_of_weights(rows, some, np.full(len(some.start) - 1, -1.0))
        excluded[variable] = sums.min() < 0
    return excluded
