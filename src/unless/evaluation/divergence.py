"""Kullback-Leibler divergence from a known law to a learned one."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice, product
from typing import Any

import numpy as np
import numpy.typing as npt

from unless.data.dataset import Dataset, Rows
from unless.data.domain import Code, Domain
from unless.data.showing import html_table
from unless.errors import SettingError
from unless.inference.engine import Memory
from unless.inference.model import LogLinearModel
from unless.inference.randomness import RandomState
from unless.inference.results import impossible
from unless.runtime.progress import Look, showing_share, within
from unless.structures.conditions import FeatureArrays

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
# Domains of at most this many states are summed over state by state.
MAX_STATES = 2**20
# Above about this many steps expectations take longer than a sample is worth.
MAX_STEPS = 5e9
N_SAMPLES = 100_000
_AT_ONCE = 2**14


class Divergence(float):
    """A divergence in nats: a number that knows its standard error (0 where it is exact) and its method."""

    error: float
    method: str

    def __new__(cls, value: float, error: float = 0.0, method: str = "states") -> "Divergence":
        """Make a number; a float is complete once it is made."""
        made = super().__new__(cls, value)
        made.error = error
        made.method = method
        return made

    @property
    def value(self) -> float:
        """The plain number."""
        return float(self)

    def _repr_html_(self) -> str:
        return html_table(repr(self)[1:-1], (), ())

    def __repr__(self) -> str:
        spread = f" ± {self.error:.2g}" if self.error else ""
        return f"<Divergence: {float(self):.6g}{spread} nats, by {self.method}>"


def kl_divergence(
    truth: LogLinearModel,
    net: LogLinearModel,
    *,
    n_samples: int | None = None,
    random_state: RandomState = None,
    max_memory: Memory = None,
    show_progress: bool | None = None,
) -> Divergence:
    """Return KL(truth || net) = E_truth[log truth(x) - log net(x)], in nats.

    Exact over all states of a small domain or by the expectations of all features; else, and wherever
    `n_samples` is given, over a sample from the truth, with its standard error. Infinite where the net gives
    no probability to what the truth allows. All ways need exact answers of both models, within `max_memory`.
    The models must be of the same variables; columns and levels may be in another order.
    """
    if n_samples is not None and n_samples < 2:
        raise SettingError(f"n_samples must be 2 or more, not {n_samples!r}.")
    codes = _codes(truth.domain, net.domain)
    total, net_total = _total(truth, max_memory), _total(net, max_memory)
    totals = total - net_total
    if n_samples is None and float(np.prod(truth.domain.n_levels.astype(np.float64))) <= MAX_STATES:
        with showing_share("Comparing", show_progress, "states") as look:
            return _by_states(truth, net, codes, total, net_total, look)
    if n_samples is None and _n_steps(truth, net) <= MAX_STEPS:
        with showing_share("Comparing", show_progress, "features") as look:
            return Divergence(_by_expectations(truth, net, codes, totals, look), method="expectations")
    how: dict[str, Any] = {"max_memory": max_memory, "show_progress": show_progress}
    sample = truth.sample_codes(n_samples or N_SAMPLES, random_state, method="exact", **how)
    with showing_share("Comparing", show_progress, "rows") as look:
        return _by_sampling(truth, net, codes, totals, sample, look)


def _by_states(
    truth: LogLinearModel,
    net: LogLinearModel,
    codes: list[Integers],
    total: float,
    net_total: float,
    look: Look,
) -> Divergence:
    from unless.kernels.algebra import dot

    expected, n_done, n_states = 0.0, 0, int(np.prod(truth.domain.n_levels))
    for rows in _states(truth.domain):
        logs = truth.log_potentials(rows) - total
        possible = logs > -np.inf
        others = _potentials(net, codes, truth.domain, rows[possible]) - net_total
        if np.isneginf(others).any():
            # However improbable: what is possible may round to a probability of zero.
            return Divergence(np.inf, method="states")
        expected += dot(np.exp(logs[possible]), logs[possible] - others)
        n_done += len(rows)
        look(n_done / n_states)
    return Divergence(max(expected, 0.0), method="states")


def _by_sampling(
    truth: LogLinearModel,
    net: LogLinearModel,
    codes: list[Integers],
    totals: float,
    sample: Dataset,
    look: Look,
) -> Divergence:
    gaps = np.empty(len(sample.rows))
    for low in range(0, len(gaps), _AT_ONCE):
        rows = sample.rows[low : low + _AT_ONCE]
        some = truth.log_potentials(rows) - _potentials(net, codes, truth.domain, rows) - totals
        gaps[low : low + _AT_ONCE] = some
        look((low + len(rows)) / len(gaps))
    mean = float(np.average(gaps, weights=sample.counts))
    if mean == np.inf:
        return Divergence(mean, method="sampling")
    spread = float(np.average((gaps - mean) ** 2, weights=sample.counts))
    return Divergence(mean, float(np.sqrt(spread / (sample.n_rows - 1))), "sampling")


def _by_expectations(
    truth: LogLinearModel, net: LogLinearModel, codes: list[Integers], totals: float, look: Look
) -> float:
    unknown = [{v: int(level)} for v, code in enumerate(codes) for level in np.flatnonzero(code < 0)]
    same = [np.arange(len(code)) for code in codes]
    if _is_possible(truth, unknown) or _allows_what_is_forbidden(truth, net, codes):
        return float("inf")
    share = len(truth.features) / max(1, len(truth.features) + len(net.features))
    own = _expected_potential(truth, truth, same, within(look, 0.0, share))
    other = _expected_potential(truth, net, codes, within(look, share, 1.0))
    return max(own - other - totals, 0.0)


def _expected_potential(
    truth: LogLinearModel, model: LogLinearModel, codes: list[Integers], look: Look
) -> float:
    """Return the expectation under the truth of the log potential of a model."""
    from unless.kernels.algebra import dot

    arrays, weights = model.plain
    # What may happen at all has been seen to; no sum meets an infinity here.
    weights = np.where(np.isneginf(weights), 0.0, weights)
    chances = np.zeros(len(weights))
    plain, rows, n_done = [], [], 0
    for number, fits in enumerate(_fits(truth, model, arrays, codes)):
        if not weights[number]:
            continue
        if all(fit.sum() == 1 for fit in fits.values()):
            plain.append(number)
            rows.append(truth.exact.codes({v: int(np.argmax(fit)) for v, fit in fits.items()}))
        elif all(fit.any() for fit in fits.values()):
            _, table = truth.exact.joint(list(fits), {})
            chances[number] = table[np.ix_(*(np.flatnonzero(fit) for fit in fits.values()))].sum()
            n_done += 1
            look(n_done / len(weights))
    total = truth.exact.posteriors(truth.exact.codes({}), marginals=False)[0][0]
    for low in range(0, len(rows), _AT_ONCE):
        some = np.stack(rows[low : low + _AT_ONCE])
        part = within(look, (n_done + low) / len(weights), (n_done + low + len(some)) / len(weights))
        logs, _ = truth.exact.posteriors(some, marginals=False, look=part)
        chances[plain[low : low + _AT_ONCE]] = np.exp(logs - total)
    return float(dot(chances, weights))


def _allows_what_is_forbidden(truth: LogLinearModel, net: LogLinearModel, codes: list[Integers]) -> bool:
    """Tell whether a state that the net excludes is possible under the truth, however improbable."""
    arrays, weights = net.plain
    forbidden = arrays.take(np.isneginf(weights))
    return any(
        _is_possible(truth, (dict(zip(fits, cell, strict=True)) for cell in _cells(fits)))
        for fits in _fits(truth, net, forbidden, codes)
    )


def _is_possible(truth: LogLinearModel, assignments: Iterable[Mapping[int, int]]) -> bool:
    left = iter(assignments)
    while some := list(islice(left, _AT_ONCE)):
        logs, _ = truth.exact.posteriors(np.stack([truth.exact.codes(one) for one in some]), marginals=False)
        if (logs > -np.inf).any():
            return True
    return False


def _cells(fits: Mapping[int, Bools]) -> Iterator[tuple[int, ...]]:
    return product(*(np.flatnonzero(fit).tolist() for fit in fits.values()))


def _fits(
    truth: LogLinearModel, model: LogLinearModel, arrays: FeatureArrays, codes: list[Integers]
) -> Iterator[dict[int, Bools]]:
    """Give, for each feature of a model, the levels of the truth's variables that fit it, by position."""
    place = [truth.domain.index(name) for name in model.domain.names]
    for literals in arrays.literals():
        fits: dict[int, Bools] = {}
        for variable, level, equal in literals:
            position = place[variable]
            fit = (codes[position] == level) == equal
            fits[position] = fits[position] & fit if position in fits else fit
        yield fits


def _total(model: LogLinearModel, max_memory: Memory) -> float:
    total = model.log_partition(max_memory=max_memory)
    if total == -np.inf:
        raise impossible(model.domain, {})
    return total


def _n_steps(truth: LogLinearModel, net: LogLinearModel) -> float:
    """Return about how many steps the expectations take: one pass for each feature, more for "not equal"."""
    n_passes = 0.0
    for model in (truth, net):
        arrays, weights = model.plain
        levels = np.where(arrays.equal, 1.0, model.domain.n_levels[arrays.variable])
        # Several "not equal" to levels of one variable leave one loop over its levels.
        feature = np.repeat(np.arange(len(weights)), np.diff(arrays.start))
        again = (feature[1:] == feature[:-1]) & (arrays.variable[1:] == arrays.variable[:-1])
        levels[1:][again] = 1.0
        n_passes += (
            float(np.exp(np.add.reduceat(np.log(levels), arrays.start[:-1])).sum()) if len(weights) else 0
        )
    return n_passes * truth.exact.cost.cells


def _codes(truth: Domain, net: Domain) -> list[Integers]:
    """Return, for each variable of the truth, the net's code of each level; -1 where the net has none."""
    if set(truth.names) != set(net.names):
        strange = sorted(set(truth.names) ^ set(net.names))[0]
        raise SettingError(
            f"Only one of the two models has a variable {strange!r}; compare models of the same."
        )
    return [
        np.array([_code(net, variable.name, label) for label in variable.levels], dtype=np.int64)
        for variable in truth
    ]


def _code(domain: Domain, name: str, label: str) -> int:
    levels = domain[name].levels
    return levels.index(label) if label in levels else -1


def _potentials(net: LogLinearModel, codes: list[Integers], truth: Domain, rows: Rows) -> Floats:
    """Return the net's log potentials of rows coded by the truth; -inf for levels it does not know."""
    columns = [codes[truth.index(name)][rows[:, truth.index(name)]] for name in net.domain.names]
    translated = np.column_stack(columns)
    known = (translated >= 0).all(axis=1)
    logs = np.full(len(rows), -np.inf)
    logs[known] = net.log_potentials(translated[known].astype(Code))
    return logs


def _states(domain: Domain) -> Iterator[Rows]:
    shape = tuple(int(size) for size in domain.n_levels)
    n_states = int(np.prod(shape))
    for low in range(0, n_states, _AT_ONCE):
        numbers = np.arange(low, min(low + _AT_ONCE, n_states))
        yield np.column_stack(np.unravel_index(numbers, shape)).astype(Code)
