"""Kernels in place of BLAS and LAPACK give what these give, but for rounding."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unless.kernels.algebra import add_product, add_spread, dot, factorise, solve, spectrum, substitute_all

seeds, sizes = st.integers(0, 2**32 - 1), st.integers(0, 70)


def symmetric(rng, size, kind):
    """Return a matrix without negative eigenvalues, and often with zero ones or with equal ones."""
    if kind == "diagonal":
        return np.diag(rng.integers(0, 3, size).astype(float))
    if kind == "alike":
        return np.full((size, size), 0.5) + 0.5 * np.eye(size)
    parts = rng.normal(size=(size, int(rng.integers(0, size + 1))))
    scale = 10.0 ** rng.integers(-4, 5, size) if kind == "uneven" else np.ones(size)
    return scale[:, None] * (parts @ parts.T) * scale


@settings(deadline=None, max_examples=50)
@given(seed=seeds, size=st.sampled_from([0, 1, 7, 8, 63, 64, 1_000, 12_345]))
def test_products_of_vectors(seed, size):
    left, right = np.random.default_rng(seed).normal(size=(2, size))
    assert dot(left, right) == pytest.approx(left @ right, rel=1e-12, abs=1e-12 * size)


@settings(deadline=None, max_examples=50)
@given(seed=seeds, n_rows=sizes, n_columns=sizes)
def test_products_of_matrices_and_vectors(seed, n_rows, n_columns):
    rng = np.random.default_rng(seed)
    matrix, vector, before = rng.normal(size=(n_rows, n_columns)), rng.normal(size=n_columns), np.ones(n_rows)
    total = before.copy()
    add_product(matrix, vector, total)
    assert total == pytest.approx(before + matrix @ vector, abs=1e-12)


@settings(deadline=None, max_examples=50)
@given(seed=seeds, size=sizes, kind=st.sampled_from(["diagonal", "alike", "uneven", "even"]))
def test_eigenvalues_and_what_lies_along_their_vectors(seed, size, kind):
    rng = np.random.default_rng(seed)
    matrix, vector = symmetric(rng, size, kind), rng.normal(size=size)
    expected, axes = np.linalg.eigh(matrix)
    found, turned = np.empty(size), vector.copy()
    # What is above the diagonal is not read.
    spectrum(np.tril(matrix) + np.triu(np.full((size, size), np.nan), 1), turned, found)
    largest = max(1e-9, float(np.abs(expected).max(initial=0.0)))
    assert np.sort(found) == pytest.approx(expected, abs=1e-13 * largest)
    # Vectors of equal eigenvalues may be turned among themselves, which no function of the matrix notices.
    for shift in (1e-3 * largest, largest):
        wanted = ((axes.T @ vector) ** 2 / (expected + shift)).sum()
        assert (turned**2 / (found + shift)).sum() == pytest.approx(wanted, rel=1e-8)


@settings(deadline=None, max_examples=50)
@given(seed=seeds, size=st.integers(1, 140))
def test_factors_in_one_panel_and_in_several(seed, size):
    rng = np.random.default_rng(seed)
    parts = rng.normal(size=(size, size + 5))
    matrix = parts @ parts.T
    found = matrix.copy()
    assert factorise(found)
    assert np.tril(found) == pytest.approx(np.linalg.cholesky(matrix), abs=1e-9)
    negative = rng.integers(size)
    matrix[negative, negative] = -1.0
    assert not factorise(matrix)


@settings(deadline=None, max_examples=50)
@given(seed=seeds, size=sizes, width=st.integers(1, 5))
def test_elimination(seed, size, width):
    rng = np.random.default_rng(seed)
    matrix, rights = rng.normal(size=(size, size)), rng.normal(size=(size, width))
    # Without an exchange of rows it would divide by zero.
    matrix[np.diag_indices(size)] *= rng.integers(0, 2, size)
    found = rights.copy()
    if size > 1:
        assert solve(matrix.copy(), found)
        worst = np.linalg.cond(matrix)
        assert found == pytest.approx(
            np.linalg.solve(matrix, rights), abs=1e-13 * worst * np.abs(found).max()
        )
    assert not solve(np.ones((size + 2, size + 2)), np.ones((size + 2, 1)))


@settings(deadline=None, max_examples=50)
@given(seed=seeds, size=sizes, width=st.integers(1, 5))
def test_many_right_sides(seed, size, width):
    rng = np.random.default_rng(seed)
    matrix, rights = symmetric(rng, size, "even") + np.eye(size), rng.normal(size=(size, width))
    factor, found = matrix.copy(), rights.copy()
    assert factorise(factor)
    substitute_all(np.tril(factor) + np.tril(factor, -1).T, found)
    assert found == pytest.approx(np.linalg.solve(matrix, rights), abs=1e-9)


@settings(deadline=None, max_examples=50)
@given(seed=seeds, n_rows=st.integers(0, 9), size=st.integers(0, 150), share=st.sampled_from([0.0, 0.1, 1.0]))
def test_spreads(seed, n_rows, size, share):
    rng = np.random.default_rng(seed)
    gradients = rng.normal(size=(n_rows, size)) * (rng.random((n_rows, size)) < share)
    counts, inverse, spread = (
        rng.integers(1, 5, n_rows).astype(float),
        symmetric(rng, size, "even"),
        np.ones(size),
    )
    add_spread(gradients, counts, inverse, spread)
    assert spread == pytest.approx(1 + counts @ (gradients @ inverse) ** 2, rel=1e-9)
