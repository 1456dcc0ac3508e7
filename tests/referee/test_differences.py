"""Groups differ where a test of the difference says so; the order of anything decides nothing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from studies.truth import laws
from twins.naive_differences import naive_difference, naive_q
from unless.data.dataset import Dataset
from unless.data.domain import Domain, Variable
from unless.independence.statistics import adjusted_whatever_depends
from unless.referee.differences import _rank as rank_of
from unless.referee.differences import find_differences


def dataset(columns, groups="12", counts=None):
    """Make a table of columns of codes by name; the group g has these labels."""
    variables = [
        Variable(name, tuple(groups) if name == "g" else tuple(map(str, range(max(codes, default=0) + 1))))
        for name, codes in columns.items()
    ]
    codes = np.column_stack([np.asarray(one) for one in columns.values()])
    return Dataset.from_codes(Domain(tuple(variables)), codes, counts)


def counted(counts):
    """Make a table of two columns and a group of the counts of its cells."""
    cells = np.argwhere(np.ones(counts.shape, dtype=bool))
    names = zip("xyg", cells.T, strict=True)
    return dataset(dict(names), [str(one) for one in range(counts.shape[2])], counts.ravel())


def sample(n, seed, strengths):
    """Draw x and y, with z beside them, in as many groups as there are strengths of the link."""
    rng = np.random.default_rng(seed)
    parts = []
    for place, strength in enumerate(strengths):
        x, z = rng.integers(0, 2, n), rng.integers(0, 3, n)
        follows = rng.random(n) < abs(strength)
        y = np.where(follows, x if strength > 0 else 1 - x, rng.integers(0, 2, n))
        parts.append(np.column_stack([x, y, z, np.full(n, place)]))
    codes = np.concatenate(parts)
    return dataset(dict(zip("xyzg", codes.T, strict=True)), [chr(65 + k) for k in range(len(strengths))])


def shown(data, group="g", **more):
    return {
        one.pair: (one.kind, one.groups)
        for one in find_differences(data, group, **more).pairs
        if one.is_shown
    }


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1))
def test_the_statistic_is_that_of_the_readable_form(seed):
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(2, 4, 3).tolist())
    counts = rng.integers(30, 300, shape)
    if rng.random() < 0.4:
        # A level that one group lacks: cells that cannot have rows.
        counts[0, :, 0] = 0
    value, df, p = naive_difference(counts)
    (one,) = find_differences(counted(counts), "g").pairs
    assert one.statistic.df == df
    if df and min(p, one.p) < 0.1:
        # The ridge of the regressions costs a little; p is the larger of likelihood ratio and score.
        assert one.statistic.value == pytest.approx(value, rel=0.03, abs=0.3)
        assert np.log(one.p) == pytest.approx(np.log(p), rel=0.15, abs=0.15)
    elif df:
        # Screened by score: it is not needed to the digit that it is not small.
        assert one.p > 0.1


def test_q_is_that_of_the_readable_form():
    p_values = np.random.default_rng(0).random(40) ** 3
    assert adjusted_whatever_depends(p_values) == pytest.approx(naive_q(p_values.tolist()))
    assert len(adjusted_whatever_depends([])) == 0


@pytest.mark.parametrize(
    ("strengths", "kind"),
    [
        ((0.0, 0.4), "gained"),
        ((0.4, 0.0), "lost"),
        ((0.2, 0.5), "stronger"),
        ((0.5, 0.2), "weaker"),
        ((0.3, -0.3), "other"),
    ],
)
def test_the_kinds(strengths, kind):
    found = find_differences(sample(2_000, 1, strengths), "g")
    first = found.pairs[0]
    assert (first.pair, first.kind, first.groups) == (("x", "y"), kind, (("A",), ("B",)))
    assert (found.groups, found.n_rows, found.notes) == (("A", "B"), (2_000, 2_000), ())
    assert [one.kind for one in found.pairs[1:]] == ["not shown", "not shown"]
    assert first.more_rows is None
    assert first.sides[0].v == pytest.approx(abs(strengths[0]), abs=0.08)
    assert first.sides[1].v == pytest.approx(abs(strengths[1]), abs=0.08)


def test_nothing_is_said_of_one_law_and_few_rows_ask_for_more():
    large = find_differences(sample(3_000, 2, (0.3, 0.3)), "g").pairs
    assert {one.kind for one in large} == {"not shown"}
    assert [one.more_rows for one in large] == [None] * 3
    assert max(one.limit for one in large) < 0.2
    small = find_differences(sample(100, 2, (0.3, 0.3)), "g").pairs
    assert {one.kind for one in small} == {"not shown"}
    for one in small:
        assert one.limit > 0.2
        # With as many rows more the limit would be the effect.
        assert one.limit * (200 / (200 + one.more_rows)) ** 0.5 == pytest.approx(0.2, rel=0.01)
        assert find_differences(sample(100, 2, (0.3, 0.3)), "g", effect=0.9).pairs[0].more_rows is None


def test_of_several_groups_the_cut_is_named():
    assert shown(sample(1_500, 3, (0, 0.4, 0, 0))) == {("x", "y"): ("gained", (("A", "C", "D"), ("B",)))}
    assert shown(sample(1_500, 3, (0.4, 0, 0, 0.4))) == {("x", "y"): ("lost", (("A", "D"), ("B", "C")))}
    many = (0.5, 0, 0, 0.5, 0, 0, 0.5)
    assert shown(sample(1_500, 4, many)) == {("x", "y"): ("lost", (("A", "D", "G"), ("B", "C", "E", "F")))}
    assert shown(sample(1_500, 5, (0.3, 0.3, 0.3))) == {}


def test_a_link_that_another_carries_does_not_differ():
    # x and w hang on y; x-y is there in the second group only, so that x-w is only through it.
    rng = np.random.default_rng(6)
    n, g = 6_000, np.repeat([0, 1], 3_000)
    y = rng.integers(0, 2, n)
    w = np.where(rng.random(n) < 0.7, y, rng.integers(0, 2, n))
    x = np.where((rng.random(n) < 0.6) & (g == 1), y, rng.integers(0, 2, n))
    assert shown(dataset({"w": w, "x": x, "y": y, "g": g})) == {("x", "y"): ("gained", (("1",), ("2",)))}


def test_the_order_of_columns_levels_and_groups_changes_nothing():
    without, with_it, pair = laws.link_in_one_group(np.random.default_rng(7))
    rng = np.random.default_rng(8)
    parts = [law.sample_codes(1_000, rng) for law in (without, with_it)]
    codes = np.column_stack([np.concatenate(parts), np.repeat([0, 1], 1_000)])
    names = [*without.names, "g"]
    levels = [*without.levels, ("A", "B")]

    def made(order, turned):
        variables, columns = [], []
        for k in order:
            n = len(levels[k])
            variables.append(Variable(names[k], levels[k][::-1] if turned else levels[k]))
            columns.append(n - 1 - codes[:, k] if turned else codes[:, k])
        return Dataset.from_codes(Domain(tuple(variables)), np.column_stack(columns))

    def told(data):
        return [
            (one.pair, one.statistic, one.p, one.q, one.limit, one.given, one.sides and set(one.sides))
            for one in find_differences(data, "g").pairs
        ]

    plain = told(made(range(7), turned=False))
    assert plain[0][0] == pair
    assert plain == told(made([3, 6, 0, 5, 1, 4, 2], turned=False)) == told(made(range(7), turned=True))
    kinds = [find_differences(made(range(7), turned), "g").pairs[0].kind for turned in (False, True)]
    assert kinds == ["gained", "lost"]


def test_what_cannot_be_compared_is_left_out_and_told():
    rng = np.random.default_rng(9)
    n, g = 800, np.repeat([0, 1, 2], [400, 390, 10])
    columns = {
        "many": np.arange(n) % 13,
        "year": np.minimum(g, 1),
        "here": np.where(g == 0, rng.integers(0, 2, n), rng.integers(2, 4, n)),
        "half": np.where(g == 0, rng.integers(0, 2, n), 0),
        "x": rng.integers(0, 2, n),
        "g": g,
    }
    found = find_differences(dataset(columns, "123"), "g")
    assert found.groups == ("1", "2")
    assert found.notes == (
        "Fewer than 20 rows, too few to compare: 3.",
        "A single level in each group, left out: year.",
        "More than 12 levels, left out: many.",
        "No level in two of the groups, left out: here.",
    )
    (one,) = found.pairs
    # One group has a single level of it: no number of rows would tell.
    assert (one.pair, one.kind, one.statistic.df, one.p, one.more_rows) == (
        ("half", "x"),
        "not shown",
        0,
        1,
        None,
    )
    crowded = {"x": rng.integers(0, 2, 520), "y": rng.integers(0, 2, 520), "g": np.arange(520) % 13}
    found = find_differences(dataset(crowded, "abcdefghijklm"), "g")
    assert (found.pairs, found.notes) == ((), ("13 groups are too many to compare; 12 are possible.",))


def test_a_column_that_another_determines_is_no_rival():
    rng = np.random.default_rng(10)
    n, g = 4_000, np.repeat([0, 1], 2_000)
    state = rng.integers(0, 6, n)
    y = np.where((rng.random(n) < 0.6) & (g == 1), state // 3, rng.integers(0, 2, n))
    said = shown(dataset({"country": state // 3, "state": state, "y": y, "g": g}))
    assert said["country", "y"][0] == "gained"
    assert ("country", "state") not in said


def test_one_law_sampled_twice_is_not_said_to_differ():
    said = 0
    for seed in range(700, 730):
        rng = np.random.default_rng(seed)
        codes = laws.csi(seed, 6).sample_codes(3_000, rng)
        columns = {f"x{k}": codes[:, k] for k in range(codes.shape[1])}
        said += bool(shown(dataset({**columns, "g": np.arange(3_000) % 2})))
    assert said <= 2


@settings(max_examples=50)
@given(st.integers(0, 2**32 - 1))
def test_the_rank_in_whole_numbers_is_that_of_floats(seed):
    rng = np.random.default_rng(seed)
    matrix = (rng.random(rng.integers(1, 12, 2)) < rng.random()).astype(np.int64)
    assert rank_of(matrix) == np.linalg.matrix_rank(matrix)
