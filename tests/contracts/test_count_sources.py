"""Every way to count a table gives the same table as counting row by row."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strategies import datasets
from twins.naive import naive_table
from unless.counting.reference import PlainCounts
from unless.counting.slices import PackedTable, build_cube, fits_cube


def cube_table(cube, a, b, context):
    """Read the table of two variables in a context from the cube of all partial assignments."""
    digits = [context.get(variable, size) for variable, size in enumerate(cube.n_levels.tolist())]
    digits[a], digits[b] = slice(0, int(cube.n_levels[a])), slice(0, int(cube.n_levels[b]))
    table = cube.counts.reshape(tuple(cube.n_levels + 1))[tuple(digits)]
    return table if a < b else table.T


SOURCES = {
    "numpy": lambda data, a, b, context: PlainCounts(data).count(a, b, context),
    "bitmaps": lambda data, a, b, context: PackedTable.of(data).count(a, b, context, list_limit=0),
    "lists": lambda data, a, b, context: PackedTable.of(data).count(a, b, context, list_limit=10**4),
    "either": lambda data, a, b, context: PackedTable.of(data).count(a, b, context),
    "cube": lambda data, a, b, context: cube_table(build_cube(data, range(data.n_variables)), a, b, context),
}


@st.composite
def questions(draw):
    """Draw a table, two of its variables and a context over some of the others, seldom one without rows."""
    data = draw(datasets())
    a, b, *others = draw(st.permutations(range(data.n_variables)))
    row = data.rows[draw(st.integers(0, data.n_distinct - 1))]
    given = others[: draw(st.integers(0, len(others)))]
    context = {variable: int(row[variable]) for variable in given}
    if given and draw(st.integers(0, 9)) == 0:
        context[given[0]] = draw(st.integers(0, int(data.domain.n_levels[given[0]]) - 1))
    return data, a, b, context


@pytest.mark.parametrize("source", SOURCES)
@settings(max_examples=60, deadline=None)
@given(question=questions())
def test_counts_equal_counting_row_by_row(source, question):
    data, a, b, context = question
    if source == "cube" and not fits_cube(data.domain.n_levels):
        return
    expected = naive_table(data.rows, data.counts, data.domain.n_levels, a, b, context)
    assert np.array_equal(SOURCES[source](*question), expected)


@settings(max_examples=30, deadline=None)
@given(question=questions(), random=st.randoms(use_true_random=False))
def test_packing_in_another_order_moves_the_variables_only(question, random):
    data, a, b, context = question
    order = list(range(data.n_variables))
    random.shuffle(order)
    place = {column: position for position, column in enumerate(order)}
    moved = {place[variable]: code for variable, code in context.items()}
    expected = naive_table(data.rows, data.counts, data.domain.n_levels, a, b, context)
    assert np.array_equal(PackedTable.of(data, order).count(place[a], place[b], moved), expected)
