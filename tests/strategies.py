"""Hypothesis strategies for small tables of categories: ordinary, dependent, sparse and degenerate ones."""

import numpy as np
from hypothesis import strategies as st

from unless.data.dataset import Dataset
from unless.data.domain import Domain, Variable

NAMES = ("B", "a", "C c", "é", "10", "9", "Z_z", "x|y")
# Listed more than once are the kinds that show most.
KINDS = (
    *("independent", "copies", "gated", "huge counts") * 3,
    *("sparse", "one row", "identical rows"),
)

DISTURBANCES = (*("none",) * 7, "constant", "unused", "duplicate")


@st.composite
def domains(draw, *, min_variables=2, max_variables=6, max_levels=5):
    """Draw a domain of named variables with two or more levels each."""
    names = draw(st.permutations(NAMES))[: draw(st.sampled_from(range(min_variables, max_variables + 1)))]
    n_levels = [draw(st.sampled_from(range(2, max_levels + 1))) for _ in names]
    return Domain(
        tuple(
            Variable(name, tuple(f"l{code}" for code in range(size)))
            for name, size in zip(names, n_levels, strict=True)
        )
    )


@st.composite
def coded_tables(draw, *, min_variables=2, max_variables=6, max_levels=5, max_rows=120, kinds=KINDS):
    """Draw (Domain, rows, counts): rows of codes, perhaps repeated, each worth its count of at least one."""
    domain = draw(domains(min_variables=min_variables, max_variables=max_variables, max_levels=max_levels))
    kind = draw(st.sampled_from(kinds))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_rows = {"one row": 1, "sparse": 6}.get(kind, draw(st.sampled_from(_sizes(max_rows))))
    codes = _codes(rng, kind, domain.n_levels, n_rows)
    for column in range(len(domain)):
        _disturb(
            rng,
            codes,
            column,
            domain.n_levels,
            draw(st.sampled_from(DISTURBANCES)),
        )
    return domain, codes, _counts(rng, kind, n_rows, draw(st.sampled_from((1, 5, 60))))


@st.composite
def datasets(draw, **settings):
    """Draw a Dataset; `settings` are those of `coded_tables`."""
    return Dataset.from_codes(*draw(coded_tables(**settings)))


@st.composite
def tables_with_limits(draw, **settings):
    """Draw a Dataset and limits of a climb over its graphs; `settings` are those of `coded_tables`."""
    data = draw(datasets(**settings))
    pairs = st.tuples(st.sampled_from(data.names), st.sampled_from(data.names)).filter(
        lambda pair: pair[0] < pair[1]
    )
    required = draw(st.lists(pairs, max_size=2, unique=True))
    return data, {
        "max_blanket": draw(st.sampled_from([None, None, None, 0, 1, 2])),
        "required_edges": required or None,
        "forbidden_edges": [pair for pair in draw(st.lists(pairs, max_size=2)) if pair not in required]
        or None,
    }


@st.composite
def contingency_tables(draw, *, max_side=5, min_side=1):
    """Draw a table of counts, often with empty rows, empty columns, a single cell or enormous cells."""
    shape = (draw(st.integers(min_side, max_side)), draw(st.integers(min_side, max_side)))
    largest = draw(st.sampled_from((1, 3, 20, 500, 10**9)))
    cells = draw(
        st.lists(st.integers(0, largest), min_size=shape[0] * shape[1], max_size=shape[0] * shape[1])
    )
    table = np.array(cells, dtype=np.int64).reshape(shape)
    if draw(st.booleans()):
        table[draw(st.integers(0, shape[0] - 1))] = 0
    if draw(st.booleans()):
        table[:, draw(st.integers(0, shape[1] - 1))] = 0
    return table


@st.composite
def strata(draw, *, max_strata=5, max_side=4):
    """Draw a stack of contingency tables of one shape, none of them without any count."""
    shape = (draw(st.integers(1, max_side)), draw(st.integers(1, max_side)))
    n_strata = draw(st.integers(1, max_strata))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    tables = rng.integers(0, draw(st.sampled_from((2, 4, 30, 10**6))), (n_strata, *shape))
    tables[tables.sum(axis=(1, 2)) == 0, 0, 0] = 1
    return tables


def _sizes(max_rows):
    # Integers would shrink towards two rows, and so would most tables.
    return (max_rows, max_rows // 2 + 1, max_rows // 4 + 1, max_rows // 8 + 1, 5, 2)


def _codes(rng, kind, n_levels, n_rows):
    if kind == "identical rows":
        return np.tile(rng.integers(0, n_levels), (n_rows, 1))
    codes = rng.integers(0, n_levels, (n_rows, len(n_levels)))
    if kind in ("copies", "huge counts"):
        return _copy_first(rng, codes, n_levels, np.full(n_rows, True))
    if kind == "gated":
        # The last variable switches the dependence of all the others.
        return _copy_first(rng, codes, n_levels, codes[:, -1] == 0)
    return codes


def _copy_first(rng, codes, n_levels, where):
    noise = rng.uniform(0, 0.4)
    for column in range(1, len(n_levels)):
        keep = where & (rng.random(len(codes)) > noise)
        codes[keep, column] = codes[keep, 0] % n_levels[column]
    return codes


def _disturb(rng, codes, column, n_levels, how):
    if how == "constant":
        codes[:, column] = rng.integers(n_levels[column])
    elif how == "unused":
        codes[:, column] = np.minimum(codes[:, column], n_levels[column] - 2)
    elif how == "duplicate":
        other = rng.integers(codes.shape[1])
        codes[:, column] = codes[:, other] % n_levels[column]


def _counts(rng, kind, n_rows, largest):
    if kind == "huge counts":
        return rng.integers(1, 10**9, n_rows)
    return rng.integers(1, largest + 1, n_rows)


def chained_columns(n_columns, n_rows):
    """Make codes of three levels, in which each column mostly repeats the one before it."""
    rng = np.random.default_rng(0)
    columns = [rng.integers(0, 3, n_rows)]
    for _ in range(n_columns - 1):
        columns.append(np.where(rng.random(n_rows) < 0.7, columns[-1], rng.integers(0, 3, n_rows)))
    return np.array(columns).T
