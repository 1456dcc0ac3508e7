"""What GGS will need, from the shape of a table; measured on tables of 12 to 300 variables."""

from unless.data.dataset import Dataset

# Regressions that are remembered for each variable, what each takes beside its covariance, and the blanket
# that most of them have: as many as is usual.
_REGRESSIONS, _BYTES_EACH, _USUAL_BLANKET = 100, 3_000, 3
# The blanket that the test of a gate is made ready for.
_BLANKET_OF_GATES = 5
_BASE = 8 * 2**20
# Columns of numbers beside those that follow from the levels: patterns, their columns, what rows have them.
_COLUMNS = 32


def bytes_needed(data: Dataset, max_gate: int, max_gate_levels: int, n_threads: int) -> int:
    """Return how many bytes will be needed about, in a bad case."""
    n, m = data.n_variables, data.n_distinct
    sizes = data.domain.n_levels
    most, usual = int(sizes.max()), float(sizes.mean())
    # Codes by row and by column, the rows at each level; the rows of the parts of trees, which grow twice.
    kept = n * m * (18 + 16 * max_gate)
    remembered = n * _REGRESSIONS * (_BYTES_EACH + 8 * _weights(usual, usual, _USUAL_BLANKET) ** 2)
    # Patterns, as many as rows at the worst, with what is seen with them; the variance of a gate's weights.
    at_work = 8 * m * (_COLUMNS + 4 * most + 1.5 * float(sizes.sum()))
    gate = min(usual, max_gate_levels) - 1
    at_work += 4 * 8 * (gate * _weights(usual, usual, _BLANKET_OF_GATES)) ** 2
    return int(_BASE + kept + remembered + n_threads * at_work)


def _weights(target_levels: float, levels: float, n_variables: int) -> float:
    """Return the number of weights of a regression."""
    return (target_levels - 1) * (1 + n_variables * (levels - 1))
