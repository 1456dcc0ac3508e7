"""Dense tables, one a scope: what programs that know no features can read."""

from math import prod

from unless.errors import TooLarge
from unless.formats.gather import Floats, Scope
from unless.inference.model import LogLinearModel
from unless.inference.potentials import by_scope, log_table

MOST_CELLS = 10_000_000


def factors_of(model: LogLinearModel, at_most: int = MOST_CELLS) -> dict[Scope, Floats]:
    """Group the features of one scope into one table of log potentials, its axes in the order of the scope.

    Variables of a single level say nothing and are left out of scopes. A variable that is in no scope gets an
    even table of its own, because other programs expect one.
    """
    sizes = model.domain.n_levels.tolist()
    grouped = by_scope(model)
    told = {variable for scope in grouped for variable in scope}
    grouped.update({(variable,): [] for variable in range(len(sizes)) if variable not in told})
    _check_size([[sizes[variable] for variable in scope] for scope in grouped], at_most)
    ordered = sorted(grouped.items(), key=lambda item: (len(item[0]), item[0]))
    return {scope: log_table(scope, features, model.domain.n_levels) for scope, features in ordered}


def _check_size(shapes: list[list[int]], at_most: int) -> None:
    n_cells = sum(map(prod, shapes))
    if n_cells <= at_most:
        return
    widest = max(shapes, key=prod)
    raise TooLarge(
        f"The tables would have {_rounded(n_cells)} cells, more than {at_most:,} (one feature speaks of "
        f"{len(widest)} variables); keep the model in a format of features: .unless, .mn or .json."
    )


def _rounded(number: int) -> str:
    # Python refuses to write out numbers of thousands of digits.
    return f"{number:,}" if number < 10**15 else f"about 10^{number.bit_length() * 0.30103:.0f}"
