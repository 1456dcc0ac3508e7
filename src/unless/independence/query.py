"""Ask one question of independence by names and labels."""

from collections.abc import Iterable, Mapping

from unless.counting.tables import stratified_tables
from unless.data.dataset import Dataset
from unless.errors import SettingError, UnknownContext
from unless.independence.catalogue import make_test
from unless.independence.chi_square import ChiSquareTest
from unless.independence.design_effects import drawn_alike
from unless.independence.verdict import IndependenceTest, Verdict


def ask(
    dataset: Dataset,
    a: str,
    b: str,
    *,
    given: Iterable[str] = (),
    context: Mapping[str, object] | None = None,
    test: str | IndependenceTest = "pearson",
    alpha: float = 0.05,
    effect: float = 0.3,
) -> Verdict:
    """Test I(a, b | given, context): given variables pool their strata, a context picks a slice.

    Where cells are nearly empty, p of the chi-square tests comes from permutations (`Verdict.method`).

    >>> from unless.datasets import load_ucb_admissions
    >>> ask(load_ucb_admissions(), "Admit", "Gender", context={"Dept": "A"}).answer
    'dependent'
    """
    judge = make_test(test, alpha, effect)
    held = {} if context is None else dict(context)
    by = [given] if isinstance(given, str) else list(given)
    _refuse_repeats([a, b, *by, *held])
    domain = dataset.domain
    # Rows of a survey are taken as fewer that were drawn alike.
    dataset = drawn_alike(dataset, [domain.index(a), domain.index(b)])
    codes = domain.encode(held)
    tables, _ = stratified_tables(
        dataset, domain.index(a), domain.index(b), [domain.index(name) for name in by], codes
    )
    if not len(tables):
        raise UnknownContext(f"No row has {domain.decode(codes)}; ask about a context the data shows.")
    return judge.on_any(tables) if isinstance(judge, ChiSquareTest) else judge.on(tables)


def _refuse_repeats(names: list[str]) -> None:
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise SettingError(
            f"{repeated[0]!r} appears twice in the question; give each variable one part in it."
        )
