"""How often each sentence comes again when a learner learns from resamples of its table."""

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from unless.data.dataset import Dataset, check_seed, check_share, resample
from unless.data.domain import Region
from unless.data.showing import MOST_ROWS, html_table
from unless.errors import DataError, SettingError
from unless.knowledge.statements import Statement, Statements
from unless.runtime.progress import progress
from unless.typing import Bools, Floats

# A resample calls a side of a gate linked if it says so of at least this share of the side's rows.
MAJORITY = 0.5


@dataclass(frozen=True)
class Support:
    """How a statement fared in the resamples: means over those that have rows to tell by.

    `linked` is the share of rows, of those the statement calls linked, of which the findings of a resample
    say that the pair is linked; `unlinked` the same of those it calls not linked; None where it speaks of no
    such rows. `support` is the share of resamples that say the same as the statement on both sides, out of
    `n_told`; NaN if none tells. A statement that claims nothing ("associated", "unlinked", "open") comes
    again where the pair is no finding, one of "determined" where one of the two determines the other.
    """

    linked: float | None
    unlinked: float | None
    support: float
    n_told: int

    def _repr_html_(self) -> str:
        told = {"linked": self.linked, "not linked": self.unlinked, "support": self.support}
        rows = [(name, f"{value:.3g}") for name, value in told.items() if value is not None]
        return html_table(f"Support, by {self.n_told:,} resamples", ("", "share"), rows)


class Stability:
    """Learn from resamples of a table, and say how often each statement comes again.

    Learner and referee see each resample as they saw the table. Support is a measure of how much a sentence
    hangs on these rows; it is not the probability that the sentence is true, which is `confidence`.

    Parameters
    ----------
    estimator
        Any learner with its settings; it is not changed.
    n_resamples
        How often to learn again.
    sample_fraction
        None draws as many rows as there are, each put back (bootstrap); a share draws so many, none put back.
    random_state
        The seed of all draws.
    n_jobs
        How many resamples are learned from side by side, by joblib.

    Fitted, `statements_` are those of the whole table with their `support`, `supports_` has the numbers
    behind each, in the same order, and `estimator_` is the learner fitted to the whole table.

    Examples
    --------
    >>> import unless
    >>> data = unless.datasets.load_ucb_admissions()
    >>> found = unless.Stability(unless.CSGS(), n_resamples=20, random_state=0).fit(data)
    >>> found.statements_.about("Admit", "Dept").support
    1.0
    """

    def __init__(
        self,
        estimator: Any,
        n_resamples: int = 100,
        *,
        sample_fraction: float | None = None,
        random_state: int | None = None,
        n_jobs: int | None = None,
        show_progress: bool | None = None,
    ) -> None:
        self.estimator = estimator
        self.n_resamples = n_resamples
        self.sample_fraction = sample_fraction
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.show_progress = show_progress

    estimator_: Any
    statements_: Statements
    supports_: tuple[Support, ...]

    def fit(self, X: object) -> Self:
        """Learn from a table and from its resamples."""
        from joblib import Parallel, delayed

        self._check()
        data = _read(X, self.show_progress)
        self.estimator_ = _again(self.estimator).fit(data)
        said = self.estimator_.statements_
        seeds = np.random.SeedSequence(self.random_state).spawn(self.n_resamples)
        run = Parallel(n_jobs=self.n_jobs, return_as="generator")
        jobs = (
            delayed(_shares_linked)(self.estimator, data, self.sample_fraction, seed, said) for seed in seeds
        )
        shares = []
        with progress("resamples", self.show_progress, self.n_resamples) as step:
            for one in run(jobs):
                shares.append(one)
                step()
        self.supports_ = tuple(
            _support(numbers, one) for numbers, one in zip(np.stack(shares, axis=1), said, strict=True)
        )
        supported = (
            replace(one, support=support.support) for one, support in zip(said, self.supports_, strict=True)
        )
        self.statements_ = replace(said, statements=tuple(supported))
        return self

    def _check(self) -> None:
        if not hasattr(self.estimator, "fit") or isinstance(self.estimator, type):
            raise SettingError(f"estimator={self.estimator!r} is no learner; give one such as CSGS().")
        number = self.n_resamples
        if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < 1:
            raise SettingError(f"n_resamples={number!r} must be a whole number, 1 or more.")
        if self.sample_fraction is not None:
            check_share(self.sample_fraction, "sample_fraction")
        check_seed(self.random_state)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the settings by name; deep ones, those of the learner, as `estimator__name`."""
        settings = {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}
        if deep and hasattr(self.estimator, "get_params"):
            inner = self.estimator.get_params()
            settings |= {f"estimator__{name}": value for name, value in inner.items()}
        return settings

    def set_params(self, **settings: Any) -> Self:
        """Change settings by name."""
        for name, value in settings.items():
            if name not in self.get_params():
                known = ", ".join(self.get_params())
                raise SettingError(f"Stability has no setting {name!r}; it has {known}.")
            if name.startswith("estimator__"):
                self.estimator.set_params(**{name.removeprefix("estimator__"): value})
            else:
                setattr(self, name, value)
        return self

    def _repr_html_(self) -> str:
        if not hasattr(self, "statements_"):
            return html_table(repr(self), (), (), ["It has not learned yet; call fit(data)."])
        shown = self.statements_[:MOST_ROWS]
        rows = [
            (f"{one.sentence}.", one.kind, "" if one.support is None else f"{100 * one.support:.0f} %")
            for one in shown
        ]
        more = len(self.statements_) - len(rows)
        return html_table(repr(self), ("statement", "kind", "support"), rows, more=more)

    def __repr__(self) -> str:
        defaults = {one.name: one.default for one in inspect.signature(type(self)).parameters.values()}
        changed = {
            name: value for name, value in self.get_params(deep=False).items() if value is not defaults[name]
        }
        first = repr(changed.pop("estimator"))
        shown = [first, *(f"{name}={value!r}" for name, value in changed.items() if value != defaults[name])]
        return f"Stability({', '.join(shown)})"


def _read(X: object, show_progress: bool | None) -> Dataset:
    from unless.data.read import read

    data = X if isinstance(X, Dataset) else read(X, show_progress=show_progress)
    if not data.n_rows:
        raise DataError("The table has no rows; there is nothing to learn from.")
    return data


def _again(estimator: Any) -> Any:
    return type(estimator)(**estimator.get_params())


# The regions in which a statement says that its pair is linked, and those in which it says that it is not;
# None: it is about no such rows. A region without conditions is all rows.
_Regions = tuple[Region, ...] | None
_EVERYWHERE: _Regions = (Region(),)


def _sides(one: Statement) -> tuple[_Regions, _Regions]:
    if one.kind in ("associated", "unlinked", "open") or not one.is_finding:
        return None, _EVERYWHERE
    if one.gate is None or one.kind in ("linked", "differs", "determined"):
        return _EVERYWHERE, None
    return one.gate.linked, one.gate.unlinked if one.kind == "gated" else None


def _shares_linked(
    estimator: Any,
    data: Dataset,
    share: float | None,
    seed: np.random.SeedSequence,
    said: Sequence[Statement],
) -> Floats:
    """Learn from one resample; return, for each statement, the share of rows linked on its two sides."""
    drawn = resample(data, np.random.default_rng(seed), share)
    again = {one.pair: one for one in _again(estimator).fit(drawn).statements_}
    shares = np.full((len(said), 2), np.nan)
    for number, one in enumerate(said):
        # There is no statement about a pair of which one does not vary in the resample.
        if (other := again.get(one.pair)) is None:
            continue
        linked = _inside(_sides(other)[0], drawn)
        if one.kind == "determined":
            linked &= other.kind == "determined"
        for side, where in enumerate(_sides(one)):
            inside = _inside(where, drawn)
            if inside.any():
                shares[number, side] = np.average(linked[inside], weights=drawn.counts[inside])
    return shares


def _inside(regions: _Regions, data: Dataset) -> Bools:
    """Tell which rows are in one of the regions; none where there are no regions."""
    inside = np.zeros(len(data.rows), dtype=np.bool_)
    for region in regions or ():
        inside |= region.holds(data.domain, data.rows)
    return inside


def _support(shares: Floats, one: Statement) -> Support:
    """Sum up a statement: `shares` has a line for each resample, NaN on a side without rows."""
    asked = [side is not None for side in _sides(one)]
    # A resample that lost all rows of a side can neither confirm nor deny.
    answers = shares[~np.isnan(shares[:, asked]).any(axis=1)]
    if not len(answers):
        return Support(None, None, float("nan"), 0)
    same = np.ones(len(answers), dtype=np.bool_)
    if asked[0]:
        same &= answers[:, 0] >= MAJORITY
    if asked[1]:
        same &= answers[:, 1] < MAJORITY
    means = [float(answers[:, side].mean()) if asked[side] else None for side in range(2)]
    return Support(means[0], means[1], float(same.mean()), len(answers))
