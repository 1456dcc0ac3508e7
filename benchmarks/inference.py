"""All single marginals under new evidence, against pyAgrum and pgmpy, on the same models."""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.options import Options
from benchmarks.peers import Peer, PeerError
from benchmarks.result import Entry, Line, Note
from benchmarks.timing import Sample, interleave, measured, median, ratios, spread, times

TITLE = "Inference: all single marginals under new evidence"
# pgmpy answers one variable at a time and takes long: one small model says enough.
FOR_PGMPY = "30 variables, plain"


def run(options: Options) -> Iterator[Entry]:
    """Compile each model once on every side, then ask under ever new evidence."""
    for name, model, target in _models():
        yield from _compare(name, model, target, options)
    yield Note(
        f"{options.repeats} turns with new evidence on a tenth of the variables; models compiled once on "
        "both sides, answers read out as arrays. pyAgrum by ShaferShenoyMRFInference, wall time (it may use "
        "threads); pgmpy by VariableElimination, 2 turns."
    )


def _compare(name: str, model, target: float, options: Options) -> Iterator[Entry]:
    rng = np.random.default_rng(7)
    asked = [_evidence(model, rng) for _ in range(options.repeats + 1)]
    turns = iter(asked)
    ours = measured(lambda: model.marginals(next(turns)).flat)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.json")
        path.write_text(json.dumps({"evidence": asked, **_potentials(model)}))
        peers = {"pyagrum": ("pyagrum", "pyagrum_marginals.py", options.repeats)}
        if name == FOR_PGMPY:
            peers["pgmpy"] = ("pgmpy", "pgmpy_marginals.py", 2)
        for peer, (package, script, repeats) in peers.items():
            turns = iter(asked * 2)
            try:
                with Peer(package, script, str(path)) as other:
                    samples = interleave({"ours": ours, "peer": other.sample}, repeats)
            except PeerError as missing:
                yield Note(f"{name}: no ratio, {missing}.")
                continue
            yield from _lines(f"{name}: {peer}", samples, target)


def _lines(what: str, samples: dict[str, list[Sample]], target: float) -> Iterator[Line]:
    ratio = median(samples["peer"], "wall") / median(samples["ours"], "wall")
    yield Line(
        f"{what} against Unless",
        ratio,
        "times",
        spread(ratios(samples["peer"], samples["ours"], "wall")),
        at_least=target,
    )
    yield Line(
        f"{what}, Unless takes",
        median(samples["ours"], "wall") * 1e3,
        "ms",
        spread(times(samples["ours"], "wall", 1e-3)),
    )


def _models() -> Iterator[tuple[str, object, float]]:
    import unless

    rng = np.random.default_rng(0)
    yield FOR_PGMPY, _local_model(30, rng), 1.0
    yield "60 variables, plain", _local_model(60, rng), 1.0
    yield "paper's domain, 16 variables", unless.datasets.make_csi(16, random_state=0), 10.0
    yield "30 variables, 4 contexts of trees", _trees_by_context(30, 2, rng), 10.0
    # Without the gates these need tables that the peer cannot hold.
    yield "60 variables, 4 contexts of short chains", _chains_by_context(60, 2, rng), 10.0


def _domain(n_variables: int):
    from unless import Domain, Variable

    return Domain(tuple(Variable(f"x{place:02}", ("0", "1")) for place in range(n_variables)))


def _weighted(domain, conditions: list[list[tuple[int, int]]], rng: np.random.Generator):
    from unless import Feature, FeatureSet, LogLinearModel

    names = domain.names
    features = FeatureSet(domain, [Feature.of({names[v]: level for v, level in one}) for one in conditions])
    return LogLinearModel(features, rng.normal(size=len(features)))


def _pair(a: int, b: int, fixed: list[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    return [[(a, i), (b, j), *fixed] for i in (0, 1) for j in (0, 1)]


def _local_model(n_variables: int, rng: np.random.Generator):
    """Link each variable with two of the seven before it: a network of moderate width."""
    conditions = []
    for b in range(1, n_variables):
        for a in rng.choice(np.arange(max(0, b - 7), b), size=min(2, b), replace=False):
            conditions += _pair(int(a), b, [])
    return _weighted(_domain(n_variables), conditions, rng)


def _gated(n_variables: int, n_gates: int, rng: np.random.Generator, links):
    conditions = []
    for code in range(2**n_gates):
        fixed = [(n_variables - 1 - gate, code >> gate & 1) for gate in range(n_gates)]
        for a, b in links(rng.permutation(n_variables - n_gates)):
            conditions += _pair(int(a), int(b), fixed)
    return _weighted(_domain(n_variables), conditions, rng)


def _trees_by_context(n_variables: int, n_gates: int, rng: np.random.Generator):
    def tree(order):
        return [(order[rng.integers(0, place)], order[place]) for place in range(1, len(order))]

    return _gated(n_variables, n_gates, rng, tree)


def _chains_by_context(n_variables: int, n_gates: int, rng: np.random.Generator):
    def chains(order):
        return [(order[place - 1], order[place]) for place in range(1, len(order)) if place % 3]

    return _gated(n_variables, n_gates, rng, chains)


def _evidence(model, rng: np.random.Generator) -> dict[str, str]:
    names = list(model.domain.names)
    chosen = rng.choice(names, size=max(1, len(names) // 10), replace=False)
    return {str(name): str(rng.integers(0, 2)) for name in chosen}


def _potentials(model) -> dict[str, object]:
    tables = [(list(names), np.asarray(table).ravel().tolist()) for names, table in model.to_potentials()]
    return {"names": list(model.domain.names), "tables": tables}
