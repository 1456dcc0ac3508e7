"""What GGS will need, from the shape of a table; measured on tables of 12 to 300 variables."""

import numpy as np

from unless.data.dataset import Dataset

_BASE = 8 * 2**20
# Regressions that are remembered for each variable, at most and for each other one; what each takes beside
# its covariance; and the blanket that most of them have.
_REGRESSIONS, _REGRESSIONS_EACH, _BYTES_EACH, _USUAL_BLANKET = 100, 2, 3_000, 3
# The blanket that the test of a gate is made ready for.
_BLANKET_OF_GATES = 4
# Columns of numbers beside those that follow from the levels: patterns, their columns, what rows have them.
_COLUMNS = 32


def bytes_needed(data: Dataset, max_gate: int, gate_levels: int, few_gates: int, n_threads: int) -> int:
    """Return how many bytes will be needed about, in a bad case; few gates are not tested by score."""
    n, m = data.n_variables, data.n_distinct
    # A level that no row shows has no column, and there are no more patterns than rows.
    sizes = np.minimum(data.domain.n_levels, m)
    most, usual = int(sizes.max()), float(sizes.mean())
    # Codes by row and by column, the rows at each level; the rows of the parts of trees, which grow twice.
    kept = n * m * (18 + 16 * max_gate)
    n_remembered = n * min(_REGRESSIONS, _REGRESSIONS_EACH * n)
    covariance = 8 * _n_weights(usual, min(_USUAL_BLANKET, n - 1), m) ** 2
    # Patterns, as many as rows at the worst, with what is seen with them; the variance of a gate's weights.
    at_work = 8 * m * (_COLUMNS + 4 * most + 1.5 * float(sizes.sum()))
    gates = sizes[(sizes > 1) & (sizes <= gate_levels)]
    if max_gate and len(gates) > few_gates:
        at_work += 4 * 8 * ((gates.mean() - 1) * _n_weights(usual, _BLANKET_OF_GATES, m)) ** 2
    return int(_BASE + kept + n_remembered * (_BYTES_EACH + covariance) + n_threads * at_work)


def _n_weights(levels: float, n_variables: int, n_patterns: int) -> float:
    """Return the number of weights of a regression on variables that have as many levels as the target."""
    return (levels - 1) * min(1 + n_variables * (levels - 1), n_patterns)
