"""Probabilities for the page: the whole joint table of a small model, single gate levels of a larger one."""

from base64 import b64encode
from collections.abc import Sequence

import numpy as np

from unless.data.domain import Domain
from unless.errors import ImpossibleEvidence, SettingError
from unless.inference.model import LogLinearModel
from unless.report.page import Given, WhatIf

# The joint table of so many states goes into the page, 8 bytes each.
MOST_STATES = 2**15
# Of a larger model, so many single levels are asked about.
MOST_LEVELS = 250

NO_NETWORK = (
    "There are no probabilities on this page: it was written without a network. "
    "Fit one with est.network(data) and give it to report(network=...)."
)

LEFT_OUT = "There are no probabilities on this page: small counts could be computed from them."


def n_states(domain: Domain) -> float:
    """Count the states of a domain, as a float because there may be very many."""
    return float(np.prod(domain.n_levels, dtype=np.float64))


def what_if(network: LogLinearModel | None, domain: Domain, gates: Sequence[int]) -> WhatIf:
    """Ask a network all that the page may be asked; `gates` are the variables to vary one at a time."""
    if network is None:
        return WhatIf("none", NO_NETWORK)
    if not isinstance(network, LogLinearModel):
        raise SettingError(
            f"network={network!r} is no model with weights; give what est.network(data) returns, or False."
        )
    if {one.name: one.levels for one in network.domain} != {one.name: one.levels for one in domain}:
        raise SettingError(
            "The network has other variables or levels than the structure; fit it to the same table."
        )
    if n_states(domain) <= MOST_STATES:
        joint = network.query(domain.names, method="exact").probabilities
        return WhatIf(
            "joint",
            f"Exact: the page holds the probabilities of all {joint.size:,} combinations and adds them up.",
            joint=b64encode(np.ascontiguousarray(joint, dtype="<f8").tobytes()).decode(),
            before=_flat(network, domain, {}),
        )
    if not network.exact.fits(None):
        return WhatIf("none", "The network is too large for exact probabilities; ask it by sampling.")
    if not gates:
        return WhatIf(
            "gates",
            "Exact, with nothing given: there are too many combinations for this page, and no column decides "
            "about links.",
            before=_flat(network, domain, {}),
        )
    levels = [(place, code) for place in gates for code in range(int(domain.n_levels[place]))]
    return WhatIf(
        "gates",
        "Exact, worked out beforehand for one level of one column at a time"
        + (
            ": the columns that decide about links." if len(levels) <= MOST_LEVELS else ": the first of them."
        ),
        before=_flat(network, domain, {}),
        given=[one for one in (_given(network, domain, *level) for level in levels[:MOST_LEVELS]) if one],
    )


def _given(network: LogLinearModel, domain: Domain, place: int, code: int) -> Given | None:
    variable = domain.variables[place]
    try:
        return Given(place, code, _flat(network, domain, {variable.name: variable.levels[code]}))
    except ImpossibleEvidence:
        return None


def _flat(network: LogLinearModel, domain: Domain, evidence: dict[str, str]) -> list[float]:
    marginals = network.marginals(evidence, method="exact")
    # The network may have the same columns in another order.
    return [float(p) for name in domain.names for p in marginals[name].probabilities]
