"""The rules of a learner with default settings, as the kernels read them."""

from typing import Any


def default_rules(data: Any, order: list[int]) -> Any:
    """Return the rules that `CSGS()` learns by."""
    import unless
    from unless.learners.settings import kernel_rules

    return kernel_rules(data, order, unless.CSGS().get_params())
