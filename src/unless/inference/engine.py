"""Questions put to a model, and the engine that answers each: exact, Gibbs sampling or belief propagation."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, Protocol

from unless.data.dataset import Rows
from unless.errors import SettingError, TooLarge
from unless.inference.randomness import RandomState, check_size
from unless.inference.results import Distribution, Marginals
from unless.runtime.memory import parse_memory, show_memory

if TYPE_CHECKING:
    from unless.inference.model import LogLinearModel

Method = Literal["auto", "exact", "gibbs", "belief"]
METHODS = ("auto", "exact", "gibbs", "belief")
Codes = Mapping[int, int]
Memory = int | str | None


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
    model: "LogLinearModel",
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


def choose_method(model: "LogLinearModel", method: str, max_memory: Memory, *, draws: bool = False) -> str:
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
    model: "LogLinearModel",
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
    need, limit = 4 * size * n_columns, parse_memory(max_memory)
    if need > limit:
        raise TooLarge(
            f"{size:,} rows of {n_columns:,} columns need {show_memory(need)}, more than the "
            f"{show_memory(limit)} allowed; draw fewer at a time or raise max_memory=."
        )
    engine = make_engine(model, method, max_memory, random_state, show_progress, draws=True)
    return engine.sample(size, evidence)
