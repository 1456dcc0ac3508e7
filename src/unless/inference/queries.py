"""Questions put to a model, and which way each is answered."""

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from unless.data.domain import Context
from unless.data.showing import html_table
from unless.errors import ImpossibleEvidence, SettingError, TooLarge
from unless.inference.distribution import Distribution
from unless.inference.marginals import Marginals
from unless.inference.randomness import RandomState, check_size
from unless.runtime.memory import parse_memory, show_memory
from unless.runtime.progress import showing_share

if TYPE_CHECKING:
    from unless.inference.exact import ExactEngine
    from unless.inference.model import LogLinearModel

Method = Literal["auto", "exact", "gibbs", "belief"]
METHODS = ("auto", "exact", "gibbs", "belief")
Codes = Mapping[int, int]
# A joint table is enumerated state by state.
MAX_JOINT = 2**22
# The most axes that arrays of every version of numpy can have.
MAX_AXES = 32


class MostProbable(Context):
    """A most probable assignment, with the log of its probability given the evidence."""

    __slots__ = ("log_probability",)

    def __init__(self, context: Context, log_probability: float) -> None:
        super().__init__(context)
        self.log_probability = log_probability

    def _repr_html_(self) -> str:
        title = f"Most probable, log probability {self.log_probability:.4f}"
        return html_table(title, ("variable", "level"), list(self.items()))


def choose_method(
    model: "LogLinearModel", method: str, max_memory: int | str | None, *, draws: bool = False
) -> str:
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


def positions(model: "LogLinearModel", variables: str | Iterable[str]) -> list[int]:
    """Turn one name or several into positions."""
    if not isinstance(variables, Iterable):
        raise SettingError(f"{variables!r} names no variable; give a name or a list of names.")
    names = [variables] if isinstance(variables, str) else list(variables)
    found = [model.domain.index(name) for name in names]
    if not found:
        raise SettingError("No variable is asked about; name one or more.")
    if len(set(found)) != len(found):
        raise SettingError("A variable is asked about twice; name each once.")
    return found


def query(
    model: "LogLinearModel",
    variables: list[int],
    evidence: Codes,
    *,
    method: str,
    max_memory: int | str | None,
    random_state: RandomState,
    show_progress: bool | None = None,
) -> Distribution:
    """Answer a query about positions given codes, one way or another."""
    check_joint(model, variables)
    way = choose_method(model, method, max_memory)
    if way == "gibbs":
        from unless.inference.gibbs import gibbs_query

        how: dict[str, Any] = {"max_memory": max_memory, "show_progress": show_progress}
        return gibbs_query(model, variables, evidence, random_state=random_state, **how)
    if way == "belief":
        from unless.inference.belief import belief_query

        return belief_query(model, variables, evidence, show_progress=show_progress)
    return exact_query(model, variables, evidence, show_progress)


def check_joint(model: "LogLinearModel", variables: list[int]) -> None:
    """Refuse a joint table that no method could fill."""
    # Numbers of this size overflow those of numpy, silently.
    n_cells = math.prod(model.domain.n_levels[variables].tolist())
    if n_cells > MAX_JOINT:
        size = f"{n_cells:.3g} cells ({show_memory(8 * n_cells)})" if n_cells < 1e300 else "over 1e300 cells"
        raise TooLarge(
            f"A joint table of these variables has {size}, more than the {MAX_JOINT:,} that are enumerated; "
            "ask about fewer variables at once."
        )
    if len(variables) > MAX_AXES:
        raise TooLarge(f"A joint table has at most {MAX_AXES} variables; ask about fewer at once.")


def exact_query(
    model: "LogLinearModel", variables: list[int], evidence: Codes, show_progress: bool | None = None
) -> Distribution:
    """Answer a query exactly."""
    domain = model.domain
    with showing_share("Answering", show_progress, "states") as look:
        log_partition, table = model.exact.joint(variables, evidence, look)
    if log_partition == -np.inf:
        raise impossible(model, evidence)
    chosen = tuple(domain.variables[variable] for variable in variables)
    return Distribution(chosen, table / table.sum(), domain.decode(evidence))


def marginals(
    model: "LogLinearModel",
    evidence: Codes,
    *,
    method: str,
    max_memory: int | str | None,
    random_state: RandomState,
    show_progress: bool | None = None,
) -> Marginals:
    """Return the marginals of all variables, found one way or another."""
    way = choose_method(model, method, max_memory) if len(model.domain) else "exact"
    if way == "gibbs":
        from unless.inference.gibbs import gibbs_marginals

        how: dict[str, Any] = {"max_memory": max_memory, "show_progress": show_progress}
        answers = gibbs_marginals(model, evidence, random_state=random_state, **how)
        return Marginals.of(model.domain, answers, evidence)
    if way == "belief":
        from unless.inference.belief import belief_marginals

        answers = belief_marginals(model, evidence, show_progress=show_progress)
        return Marginals.of(model.domain, answers, evidence)
    return exact_marginals(model, evidence)


def exact_marginals(model: "LogLinearModel", evidence: Codes) -> Marginals:
    """Return the marginals of all variables."""
    engine: ExactEngine = model.exact
    sums, answers = engine.posteriors(engine.codes(evidence))
    log_partition = float(sums[0])
    if log_partition == -np.inf:
        raise impossible(model, evidence)
    return Marginals(model.domain, answers[0], log_partition, evidence)


def log_partition(model: "LogLinearModel", evidence: Codes) -> float:
    """Return the log of the sum of potentials over the states that agree with the evidence."""
    sums, _ = model.exact.posteriors(model.exact.codes(evidence), marginals=False)
    return float(sums[0])


def probability(model: "LogLinearModel", codes: Codes, evidence: Codes) -> float:
    """Return the probability of codes given evidence."""
    given = log_partition(model, evidence)
    if given == -np.inf:
        raise impossible(model, evidence)
    if any(evidence.get(position, code) != code for position, code in codes.items()):
        return 0.0
    return float(np.exp(min(0.0, log_partition(model, {**evidence, **codes}) - given)))


def most_probable(model: "LogLinearModel", variables: list[int] | None, evidence: Codes) -> MostProbable:
    """Return the most probable assignment of some variables, or of all the evidence leaves open."""
    free = [v for v in range(len(model.domain)) if v not in evidence]
    if variables is not None and set(variables) - set(evidence) != set(free):
        check_joint(model, variables)
        answer = exact_query(model, variables, evidence)
        return MostProbable(answer.most_probable(), float(np.log(answer.probabilities.max())))
    values, states = model.exact.most_probable(model.exact.codes(evidence))
    total = log_partition(model, evidence)
    if total == -np.inf:
        raise impossible(model, evidence)
    best = {v: int(states[0, v]) for v in (free if variables is None else variables)}
    return MostProbable(model.domain.decode(best), min(0.0, float(values[0]) - total))


def sample_codes(
    model: "LogLinearModel",
    n: int,
    random_state: RandomState,
    evidence: Codes,
    *,
    method: str,
    max_memory: int | str | None,
    show_progress: bool | None = None,
) -> npt.NDArray[np.uint16]:
    """Draw rows of codes, exactly where the estimate fits, else by Gibbs sampling."""
    from unless.inference.sampling import sample_exact

    size = check_size(n)
    _check_rows(size, len(model.domain), max_memory)
    if method == "belief":
        raise SettingError("Belief propagation draws no samples; use method='exact' or method='gibbs'.")
    if choose_method(model, method, max_memory, draws=True) == "gibbs":
        from unless.inference.gibbs import gibbs_sample

        how: dict[str, Any] = {"max_memory": max_memory, "show_progress": show_progress}
        return gibbs_sample(model, size, evidence, random_state, **how)
    with showing_share("Sampling", show_progress, "rows") as look:
        rows = sample_exact(model.exact, size, random_state, evidence, look)
    if rows is None:
        raise impossible(model, evidence)
    return rows


def _check_rows(n_rows: int, n_columns: int, max_memory: int | str | None) -> None:
    # Two bytes a cell, and as much again where the rows are put in another order.
    need, limit = 4 * n_rows * n_columns, parse_memory(max_memory)
    if need > limit:
        raise TooLarge(
            f"{n_rows:,} rows of {n_columns:,} columns need {show_memory(need)}, more than the "
            f"{show_memory(limit)} allowed; draw fewer at a time or raise max_memory=."
        )


def impossible(model: "LogLinearModel", evidence: Codes) -> ImpossibleEvidence:
    """Say that nothing can be said."""
    if not evidence:
        return ImpossibleEvidence(
            "The weights of the model leave no state possible; drop a weight of infinity."
        )
    return ImpossibleEvidence(
        f"The model gives the evidence {model.domain.decode(evidence)} probability zero; drop some of it."
    )
