"""What the search for one variable's gates has found, as arrays that a file can keep.

All that later questions can read is written, so that a search brought back goes on to the same bits:
regressions too, because each is where later ones start from.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from unless.independence.logistic import Fit
from unless.independence.statistics import Statistic
from unless.learners.gating import Candidate, GateSearch, GateTree
from unless.learners.neighbourhoods import Regression
from unless.learners.parts import Conditions, Part, Table
from unless.runtime.checkpoints import Arrays


def written(found: Sequence[tuple[GateSearch, GateTree]]) -> Arrays:
    """Write searches and the trees they gave."""
    told, fits = [], [one.fitted for search, _ in found for one in search.asker.known_fits.values()]
    for search, tree in found:
        told.append({**_search(search), "tree": _tree(tree)})
    numbers = [array.ravel() for one in fits for array in (one.weights, one.covariance)]
    names = [array for one in fits for array in (one.owners, one.levels, one.shown)]
    return {
        "told": np.frombuffer(json.dumps(told).encode(), dtype=np.uint8),
        "numbers": np.concatenate([np.empty(0), *numbers]),
        "names": np.concatenate([np.empty(0, dtype=np.int64), *names]),
    }


def bring_back(searches: Sequence[GateSearch], kept: Arrays) -> list[GateTree]:
    """Fill searches that have looked at nothing yet with what was written, and return their trees."""
    told = json.loads(kept["told"].tobytes())
    numbers, names = _Reel(kept["numbers"]), _Reel(kept["names"])
    trees = []
    for search, record in zip(searches, told, strict=True):
        _fill(search, record, numbers, names)
        trees.append(_planted(search.table, search.table.whole, record["tree"]))
    return trees


class _Reel:
    """An array from which pieces are taken one after the other."""

    def __init__(self, array: Any) -> None:
        self.array, self.at = array, 0

    def take(self, *shape: int) -> Any:
        size = int(np.prod(shape))
        self.at += size
        return self.array[self.at - size : self.at].reshape(shape).copy()


def _search(search: GateSearch) -> dict[str, Any]:
    asker = search.asker
    return {
        "near": asker.near,
        "n_asked": asker.n_asked,
        "n_scored": asker.n_scored,
        "blankets": list(asker.known_blankets.items()),
        "drops": [[*key, *test] for key, test in asker.known_drops.items()],
        # In the order in which they were made: the last of a part is where the next one starts.
        "fits": [
            [*key, len(one.owners), len(one.fitted.shown), one.log_likelihood]
            for key, one in asker.known_fits.items()
        ],
        "candidates": [[*key, one] for key, one in search.known.items()],
        "listed": list(search.listed.items()),
    }


def _tree(tree: GateTree) -> dict[str, Any]:
    return {
        "conditions": tree.part.conditions,
        "blanket": tree.blanket,
        "candidates": tree.candidates,
        "gate": tree.gate,
        "union": tree.union,
        "children": [_tree(child) for child in tree.children],
    }


def _fill(search: GateSearch, record: dict[str, Any], numbers: _Reel, names: _Reel) -> None:
    asker = search.asker
    asker.near, asker.n_asked, asker.n_scored = record["near"], record["n_asked"], record["n_scored"]
    for conditions, blanket in record["blankets"]:
        asker.known_blankets[_conditions(conditions)] = tuple(blanket)
    for conditions, blanket, variable, value, df in record["drops"]:
        asker.known_drops[_conditions(conditions), tuple(blanket), variable] = Statistic(value, df)
    for conditions, blanket, n_columns, n_shown, log_likelihood in record["fits"]:
        n_free = max(0, n_shown - 1)
        weights = numbers.take(n_columns, n_free)
        covariance = numbers.take(n_columns * n_free, n_columns * n_free)
        owners, levels, shown = names.take(n_columns), names.take(n_columns), names.take(n_shown)
        fitted = Fit(weights, owners, levels, shown, log_likelihood, covariance)
        asker.remember(_conditions(conditions), tuple(blanket), Regression(fitted))
    for conditions, gate, candidate in record["candidates"]:
        search.known[_conditions(conditions), gate] = _candidate(candidate)
    for conditions, gates in record["listed"]:
        search.listed[_conditions(conditions)] = gates


def _planted(table: Table, part: Part, record: dict[str, Any]) -> GateTree:
    return GateTree(
        part,
        tuple(record["blanket"]),
        tuple(_candidates(record["candidates"])),
        record["gate"],
        tuple(record["union"]),
        tuple(
            _planted(table, table.narrowed(part, record["gate"], levels), child)
            for child in record["children"]
            for levels in [dict(_conditions(child["conditions"]))[record["gate"]]]
        ),
    )


def _candidates(records: Sequence[Any]) -> Iterator[Candidate]:
    for record in records:
        candidate = _candidate(record)
        if candidate is not None:
            yield candidate


def _candidate(record: Any) -> Candidate | None:
    if record is None:
        return None
    gate, gain, p, union = record
    return Candidate(gate, gain, p, tuple(union))


def _conditions(record: Any) -> Conditions:
    return tuple((variable, tuple(levels)) for variable, levels in record)
