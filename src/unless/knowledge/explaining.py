"""From a structure and a table to statements: what it links where, and what the data say of that."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from unless.data.dataset import Dataset
from unless.data.domain import Domain
from unless.data.progress import PATIENCE, progress
from unless.data.splitting import check_seed
from unless.errors import SettingError, UnknownContext
from unless.independence.settings import check_effect, check_rate
from unless.inference.interactions import domain_of
from unless.inference.rows import read_rows
from unless.knowledge.evidence import Levels
from unless.knowledge.judging import Judge
from unless.knowledge.measures import CORRECTIONS, Correction
from unless.knowledge.presence import Presence, agreeing, observed
from unless.knowledge.statements import Statement, Statements

# Settings that statements share with the learner whose structure they explain, where it has them.
SHARED = frozenset({"alpha", "fdr", "effect", "max_gate"})
# Fewer rows than one cell of a table needs say nothing about any pair.
LEAST_ROWS = 5


def explain(  # noqa: PLR0913 (one argument a setting)
    structure: Any,
    data: object,
    *,
    target: str | None = None,
    gates: Iterable[str] | None = None,
    forbidden_gates: Iterable[str] = (),
    context: Mapping[str, object] | None = None,
    alpha: float = 0.05,
    fdr: float = 0.05,
    correction: Correction = "benjamini-hochberg",
    effect: float = 0.3,
    max_gate: int = 3,
    n_bootstrap: int = 0,
    random_state: int | None = None,
    max_memory: int | str | None = None,
    show_progress: bool | None = None,
) -> Statements:
    """Say of each pair whether it is linked, never linked, or linked unless a gate, and why.

    The structure (CanonicalModel, Graph, FeatureSet, LogLinearModel) proposes; the data decide. Tests are
    pooled over the strata of the gate and of the pair's blanket, as many of these as the rows bear.

    Parameters
    ----------
    target
        Keep what is said of this variable.
    gates, forbidden_gates
        The only variables that may be gates, and variables that may not.
    context
        Look only at rows with these labels.
    alpha, effect
        A test finds no dependence where p >= alpha and its power against Cohen's w = effect is 80 %.
    fdr, correction
        It finds one where q is below fdr, by "benjamini-hochberg" or "benjamini-yekutieli".
    max_gate
        The most conditions in one description of a gate.
    n_bootstrap, random_state
        Resample the table so often, and say in what share the answers are the same.

    Examples
    --------
    >>> import unless
    >>> data = unless.datasets.load_ucb_admissions()
    >>> print(unless.explain(unless.CSGS().fit(data).structure_, data)[0])
    Admit depends on Gender only when Dept = A (933 of 4,526 rows, V = .14, q = 2e-4)
    """
    levels = Levels(alpha, fdr, effect)
    settings = _settings(levels, correction, max_gate, n_bootstrap, random_state)
    table, presence, held = _seen(structure, data, context, max_memory, show_progress)
    places = _gate_places(table.domain, gates, forbidden_gates, target)
    if (note := _nothing_to_say(table)) or presence is None:
        return Statements(note=note, settings=settings)
    judge = Judge(table, presence, [place for place in places if place not in held], levels, correction)
    pairs, n_untested, note = judge.pairs(target, {table.domain.names[place] for place in held})
    with progress("Explaining", show_progress, after=PATIENCE) as bar:
        settled = judge.settled(judge.found(pairs, max_gate, bar), n_untested)
        found = judge.supported(settled, n_bootstrap, random_state, bar)
    said = [one.said(table.domain, table.n_rows, target) for one in found]
    return Statements(tuple(sorted(said, key=_importance)), note, settings)


def explain_as_learned(
    structure: Any, data: Dataset, settings: Mapping[str, Any], **wanted: Any
) -> Statements:
    """Explain a structure with those of its learner's settings that statements share."""
    shared = {name: value for name, value in settings.items() if name in SHARED}
    return explain(structure, data, **shared, **wanted)


def _seen(
    structure: Any,
    data: object,
    context: Mapping[str, object] | None,
    max_memory: int | str | None,
    show_progress: bool | None,
) -> tuple[Dataset, Presence | None, dict[int, int]]:
    """Return the table, what the structure links in its rows, and what the context holds fixed."""
    domain = domain_of(structure)
    # By name: the order of the columns decides nothing, not even the rounding.
    table = read_rows(domain, data, show_progress).select(sorted(domain.names))
    held = table.domain.encode(context)
    if held:
        inside = observed(table, held)
        table = Dataset(table.domain, table.rows[inside].copy(), table.counts[inside].copy())
    if _nothing_to_say(table):
        return table, None, held
    presence = Presence.of(structure, table, max_memory)
    if held:
        presence = presence.within(agreeing(presence.rows, held))
        if not len(presence.rows):
            # Only a canonical model asked by another table: it draws no graph here, which is not "no link".
            raise UnknownContext(
                f"The structure has no context with {table.domain.decode(held)}; ask about one that it was "
                "learned from."
            )
    return table, presence, held


def _importance(one: Statement) -> tuple[int, float, Any]:
    """Rank: gates that the data bear out, other dependences, open questions, independences."""
    if (
        one.linked
        and one.unlinked
        and (one.linked.answer, one.unlinked.answer) == ("dependent", "independent")
    ):
        group = 0
    elif one.is_dependent:
        group = 1
    else:
        group = 2 if one.verdict == "undecided" else 3
    bits = sum(side.information * side.n_rows for side in one.evidence if side.answer == "dependent")
    return group, -round(bits / one.n_rows, 12), one.pair


def _nothing_to_say(data: Dataset) -> str:
    if data.n_variables < 2:
        return "The table has one variable; there is no pair to speak of."
    if len(data.constant_names) > data.n_variables - 2:
        return "Fewer than two variables vary in the table; there is nothing that could depend."
    if data.n_rows < LEAST_ROWS:
        return f"The table has {data.n_rows:,} rows; fewer than {LEAST_ROWS} say nothing about any pair."
    return ""


def _gate_places(
    domain: Domain, gates: Iterable[str] | None, forbidden: Iterable[str], target: str | None
) -> list[int]:
    if target is not None:
        domain.index(target)
    lists = []
    for setting, names in (
        ("gates", domain.names if gates is None else gates),
        ("forbidden_gates", forbidden),
    ):
        if isinstance(names, str) or not isinstance(names, Iterable):
            what = "one name" if isinstance(names, str) else "no list"
            raise SettingError(f"{setting}={names!r} is {what}; give a list of names.")
        lists.append(list(names))
        for name in lists[-1]:
            domain.index(name)
    return sorted(domain.index(name) for name in {*lists[0]} - {*lists[1]})


def _settings(
    levels: Levels, correction: str, max_gate: int, n_bootstrap: int, random_state: object
) -> dict[str, Any]:
    check_seed(random_state)
    check_rate("alpha", levels.alpha)
    check_rate("fdr", levels.fdr)
    check_effect(levels.effect)
    if correction not in CORRECTIONS:
        raise SettingError(
            f"correction={correction!r} is not known; use {' or '.join(map(repr, CORRECTIONS))}."
        )
    for name, value in (("max_gate", max_gate), ("n_bootstrap", n_bootstrap)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
            raise SettingError(f"{name}={value!r} must be a whole number of 0 or more.")
    return {
        "alpha": levels.alpha, "fdr": levels.fdr, "correction": correction, "effect": levels.effect,
        "max_gate": int(max_gate),
        "test": "pearson", "n_bootstrap": int(n_bootstrap),
    }  # fmt: skip
