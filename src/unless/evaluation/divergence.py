"""Kullback-Leibler divergence from a known law to a learned one."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice, product
from typing import Any

import numpy as np

from unless.data.dataset import Dataset, Rows
from unless.data.domain import Code, Domain
from unless.data.showing import html_table
from unless.errors import SettingError
from unless.inference.model import LogLinearModel
from unless.inference.randomness import RandomState
from unless.inference.results import impossible
from unless.runtime.memory import Memory
from unless.runtime.progress import Look, showing_share, within
from unless.structures.structure import FeatureArrays
from unless.typing import Bools, Floats, Integers

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
    pair = _ModelPair(truth, net, max_memory)
    if n_samples is None and float(np.prod(truth.domain.n_levels.astype(np.float64))) <= MAX_STATES:
        with showing_share("Comparing", show_progress, "states") as look:
            return pair.by_states(look)
    if n_samples is None and _n_steps(truth, net) <= MAX_STEPS:
        with showing_share("Comparing", show_progress, "features") as look:
            return Divergence(pair.by_expectations(look), method="expectations")
    how: dict[str, Any] = {"max_memory": max_memory, "show_progress": show_progress}
    sample = truth.sample_codes(n_samples or N_SAMPLES, random_state, method="exact", **how)
    with showing_share("Comparing", show_progress, "rows") as look:
        return pair.by_sampling(sample, look)


class _ModelPair:
    """A true and a learned model of the same variables."""

    def __init__(self, truth: LogLinearModel, net: LogLinearModel, max_memory: Memory) -> None:
        self.truth, self.net, self.codes = truth, net, _codes(truth.domain, net.domain)
        self.total, self.net_total = (model.log_partition(max_memory=max_memory) for model in (truth, net))
        for model, total in ((truth, self.total), (net, self.net_total)):
            if total == -np.inf:
                raise impossible(model.domain, {})

    def net_potentials(self, rows: Rows) -> Floats:
        """Return the net's log potentials of rows coded by the truth; -inf for levels it does not know."""
        positions = [self.truth.domain.index(name) for name in self.net.domain.names]
        translated = np.column_stack([self.codes[one][rows[:, one]] for one in positions])
        known = (translated >= 0).all(axis=1)
        logs = np.full(len(rows), -np.inf)
        logs[known] = self.net.log_potentials(translated[known].astype(Code))
        return logs

    def by_states(self, look: Look) -> Divergence:
        """Sum over all states."""
        from unless.kernels.algebra import dot

        shape = tuple(int(size) for size in self.truth.domain.n_levels)
        expected, n_states = 0.0, int(np.prod(shape))
        for low in range(0, n_states, _AT_ONCE):
            numbers = np.arange(low, min(low + _AT_ONCE, n_states))
            rows = np.column_stack(np.unravel_index(numbers, shape)).astype(Code)
            logs = self.truth.log_potentials(rows) - self.total
            possible = logs > -np.inf
            others = self.net_potentials(rows[possible]) - self.net_total
            if np.isneginf(others).any():
                # However improbable: what is possible may round to a probability of zero.
                return Divergence(np.inf, method="states")
            expected += dot(np.exp(logs[possible]), logs[possible] - others)
            look((low + len(rows)) / n_states)
        return Divergence(max(expected, 0.0), method="states")

    def by_sampling(self, sample: Dataset, look: Look) -> Divergence:
        """Average over a sample from the truth."""
        gaps = np.empty(len(sample.rows))
        for low in range(0, len(gaps), _AT_ONCE):
            rows = sample.rows[low : low + _AT_ONCE]
            gap = self.truth.log_potentials(rows) - self.net_potentials(rows) - (self.total - self.net_total)
            gaps[low : low + _AT_ONCE] = gap
            look((low + len(rows)) / len(gaps))
        mean = float(np.average(gaps, weights=sample.counts))
        if mean == np.inf:
            return Divergence(mean, method="sampling")
        spread = float(np.average((gaps - mean) ** 2, weights=sample.counts))
        return Divergence(mean, float(np.sqrt(spread / (sample.n_rows - 1))), "sampling")

    def by_expectations(self, look: Look) -> float:
        """Subtract the expectations of the features of the net from those of the truth."""
        truth, net = self.truth, self.net
        unknown = [{v: int(level)} for v, code in enumerate(self.codes) for level in np.flatnonzero(code < 0)]
        if self._is_possible(unknown) or self._allows_what_is_forbidden():
            return float("inf")
        share = len(truth.features) / max(1, len(truth.features) + len(net.features))
        same = [np.arange(len(code)) for code in self.codes]
        own = self._expected_potential(truth, same, within(look, 0.0, share))
        other = self._expected_potential(net, self.codes, within(look, share, 1.0))
        return max(own - other - (self.total - self.net_total), 0.0)

    def _expected_potential(self, model: LogLinearModel, codes: list[Integers], look: Look) -> float:
        """Return the expectation under the truth of the log potential of a model."""
        from unless.kernels.algebra import dot

        exact, (arrays, weights) = self.truth.exact, model.plain
        # Whether the forbidden is possible has been checked; no sum has an infinity here.
        weights = np.where(np.isneginf(weights), 0.0, weights)
        probabilities = np.zeros(len(weights))
        plain, rows, n_done = [], [], 0
        for number, fits in enumerate(self._fits(model, arrays, codes)):
            if not weights[number]:
                continue
            if all(fit.sum() == 1 for fit in fits.values()):
                plain.append(number)
                rows.append(exact.codes({v: int(np.argmax(fit)) for v, fit in fits.items()}))
            elif all(fit.any() for fit in fits.values()):
                _, table = exact.joint(list(fits), {})
                probabilities[number] = table[np.ix_(*(np.flatnonzero(fit) for fit in fits.values()))].sum()
                n_done += 1
                look(n_done / len(weights))
        total = exact.posteriors(exact.codes({}), marginals=False)[0][0]
        for low in range(0, len(rows), _AT_ONCE):
            some = np.stack(rows[low : low + _AT_ONCE])
            part = within(look, (n_done + low) / len(weights), (n_done + low + len(some)) / len(weights))
            logs, _ = exact.posteriors(some, marginals=False, look=part)
            probabilities[plain[low : low + _AT_ONCE]] = np.exp(logs - total)
        return float(dot(probabilities, weights))

    def _allows_what_is_forbidden(self) -> bool:
        """Tell whether a state that the net excludes is possible under the truth, however improbable."""
        arrays, weights = self.net.plain
        for fits in self._fits(self.net, arrays.take(np.isneginf(weights)), self.codes):
            cells = product(*(np.flatnonzero(fit).tolist() for fit in fits.values()))
            if self._is_possible(dict(zip(fits, levels, strict=True)) for levels in cells):
                return True
        return False

    def _is_possible(self, assignments: Iterable[Mapping[int, int]]) -> bool:
        """Tell whether the truth allows one of some assignments."""
        exact, left = self.truth.exact, iter(assignments)
        while some := list(islice(left, _AT_ONCE)):
            logs, _ = exact.posteriors(np.stack([exact.codes(one) for one in some]), marginals=False)
            if (logs > -np.inf).any():
                return True
        return False

    def _fits(
        self, model: LogLinearModel, arrays: FeatureArrays, codes: list[Integers]
    ) -> Iterator[dict[int, Bools]]:
        """Give, for each feature of a model, the levels of the truth's variables that fit it, by position."""
        positions = [self.truth.domain.index(name) for name in model.domain.names]
        for literals in arrays.literals():
            fits: dict[int, Bools] = {}
            for variable, level, equal in literals:
                position = positions[variable]
                fit = (codes[position] == level) == equal
                fits[position] = fits[position] & fit if position in fits else fit
            yield fits


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
    codes = []
    for variable in truth:
        code_of = {label: code for code, label in enumerate(net[variable.name].levels)}
        codes.append(np.array([code_of.get(label, -1) for label in variable.levels], dtype=np.int64))
    return codes
