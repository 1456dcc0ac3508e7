"""The tables that are learned from: known laws, and the first rows of one sample of each."""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from studies.paper.plan import SAMPLE, Table
from studies.paper.variants import variant_named
from unless.data.dataset import Dataset, Rows
from unless.datasets.synthetic import GatedDomain, make_csi
from unless.inference.model import sample_codes

# Networks and samples have seeds of their own; a variant that changes neither sees the same tables.
_SHAPE_SEEDS = {"complete": 0, "chain": 1, "grid": 2}


class Sample(NamedTuple):
    """The rows of a table and the law they were drawn from."""

    truth: GatedDomain
    data: Dataset


def sample_of(table: Table) -> Sample:
    """Return the first rows of the sample of a network, with the columns that the variant wants first."""
    variant = variant_named(table.variant)
    truth, rows = _sampled(
        table.shape, table.n_variables, table.network, tuple(sorted(variant.domain.items()))
    )
    data = Dataset.from_codes(truth.domain, rows[: table.size])
    if variant.first is not None:
        data = data.select(sorted(data.names, key=lambda name: name != variant.first))
    return Sample(truth, data)


# The methods and variants of a table follow each other, and learn from few samples.
@lru_cache(maxsize=4)
def _sampled(
    shape: Any, n_variables: int, network: int, settings: tuple[tuple[str, Any], ...]
) -> tuple[GatedDomain, Rows]:
    seed = (_SHAPE_SEEDS[shape], n_variables, network)
    weights, draws = (np.random.default_rng((*seed, what)) for what in (0, 1))
    truth = make_csi(n_variables, shape=shape, random_state=weights, **dict(settings))
    return truth, sample_codes(truth, SAMPLE, draws, {}, method="exact", max_memory=None)
