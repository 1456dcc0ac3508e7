"""One run: a method learns from a table, and what it learned is held against the truth."""

import time
from dataclasses import replace
from typing import Any

import numpy as np

from studies.paper.methods import METHODS, Learned, learn
from studies.paper.plan import Run
from studies.paper.samples import Sample, sample_of
from studies.paper.variants import Variant, variant_named
from unless.errors import TooLarge
from unless.evaluation.comparison import StructureComparison, compare_structures
from unless.evaluation.divergence import kl_divergence
from unless.structures.canonical import CanonicalModel
from unless.structures.structure import Indicators, features_of, pair_nodes, unpack
from unless.weights.fit import fit_weights
from unless.weights.priors import Gaussian

Record = dict[str, Any]
# More features than this are not weighed: at this many a run takes minutes.
MAX_FEATURES = 3_000
# Up to this many variables structures are compared in all contexts, beyond in those of the table.
MAX_VARIABLES_COMPARED = 16
# Digits of a divergence that a file keeps: the search for weights stops at a gradient, not at the last bit.
DIGITS = 6


def measure(run: Run) -> tuple[Record, Record]:
    """Return what was found, which is the same in every run, and the seconds it took, which are not."""
    variant = variant_named(run.table.variant)
    sample = sample_of(run.table)
    begin = time.process_time()
    learned = _learn_once(run, sample, variant)
    learn_seconds = time.process_time() - begin
    begin = time.process_time()
    weighed = _weighed(learned, sample, variant, METHODS[run.method].features or variant.features)
    weigh_seconds = time.process_time() - begin
    record = {
        "n_contexts": sample.data.n_distinct,
        "n_tests": learned.n_tests,
        "n_distinct_tests": learned.n_distinct_tests,
        **_degree(learned.structure),
        **weighed,
        **_compared(learned, sample, run.table.n_variables),
    }
    return record, {"learn_seconds": learn_seconds, "weigh_seconds": weigh_seconds}


# What was learned from the table that was measured last.
_learned: dict[tuple[Any, ...], Learned] = {}


def _learn_once(run: Run, sample: Sample, variant: Variant) -> Learned:
    """Learn, unless a variant that differs in something else only has learned the same from the table."""
    table, domain = replace(run.table, variant=""), tuple(sorted(variant.domain.items()))
    make = METHODS[run.method].make
    key = (table, domain, variant.first, run.method, repr(make(variant)) if make else "")
    if key not in _learned:
        if any(other[0] != table for other in _learned):
            _learned.clear()
        _learned[key] = learn(run.method, sample, variant)
    return _learned[key]


def _weighed(learned: Learned, sample: Sample, variant: Variant, kind: Indicators) -> Record:
    """Give the structure weights and return its divergence from the truth, or why there is none."""
    features = features_of(
        learned.structure, kind if isinstance(learned.structure, CanonicalModel) else "cliques"
    )
    found: Record = {
        "n_features": len(features),
        "kl": None,
        "kl_error": None,
        "converged": None,
        "why": None,
    }
    if len(features) > MAX_FEATURES:
        return {**found, "why": f"more than {MAX_FEATURES:,} features"}
    net = fit_weights(
        features,
        learned.rows,
        Gaussian(variant.sd),
        relative_tolerance=variant.relative_tolerance,
        n_jobs=1,
        show_progress=False,
    )
    try:
        divergence = kl_divergence(sample.truth, net, random_state=0, show_progress=False)
    except TooLarge:
        return {**found, "why": "exact inference does not fit"}
    report = net.fit_report
    return {
        **found,
        "kl": _rounded(float(divergence)),
        "kl_error": _rounded(divergence.error),
        "converged": report is not None and report.converged,
    }


def _rounded(number: float) -> float:
    return float(f"{number:.{DIGITS}g}")


def _compared(learned: Learned, sample: Sample, n_variables: int) -> Record:
    """Count right and wrong interactions: by graphs in the contexts of the table, by features in all."""
    truth, data, found = sample.truth, sample.data, learned.structure
    everywhere = None if n_variables <= MAX_VARIABLES_COMPARED else data
    by_graphs = compare_structures(truth, found, by="graphs", contexts=data, show_progress=False)
    by_features = compare_structures(truth, found, by="features", contexts=everywhere, show_progress=False)
    return {**_counts("graphs", by_graphs), **_counts("features", by_features)}


def _counts(kind: str, found: StructureComparison) -> Record:
    return {f"{kind}_{name}": getattr(found, name) for name in ("tp", "fp", "fn", "tn")}


def _degree(structure: Any) -> Record:
    """Return the largest degree of a node in any graph of a canonical model: k in the paper's bound."""
    if not isinstance(structure, CanonicalModel):
        return {"max_degree": None}
    n_nodes = len(structure.domain)
    links = unpack(structure.packed, n_nodes)
    ends = pair_nodes(np.arange(links.shape[1]), n_nodes)
    degrees = np.zeros((len(links), n_nodes), dtype=np.int64)
    for end in ends:
        for node in range(n_nodes):
            degrees[:, node] += links[:, end == node].sum(axis=1)
    return {"max_degree": int(degrees.max())}
