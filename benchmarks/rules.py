"""The rules of a learner with default settings, as the kernels read them."""

from typing import Any


def default_rules(data: Any, order: list[int]) -> Any:
    """Return the rules that `CSGS()` learns by."""
    from unless.learners.settings import kernel_rules

    return kernel_rules(
        data,
        order,
        alpha=0.05,
        effect=0.3,
        test="pearson",
        undecided="independent",
        max_blanket=None,
        required=None,
        forbidden=None,
    )
