"""Finished cells, looked up by what they are: numbers over networks, means, and tables as CSV."""

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from studies.paper.plan import Cell, Plan, Site, Study
from studies.paper.readings import HEADLINE, reading_named
from studies.paper.store import Store

Floats = npt.NDArray[np.float64]
_KEYS = ("reading", "shape", "n_variables", "network", "size", "contestant")
_FOUND = (
    "kl", "kl_error", "converged", "n_features", "n_contexts", "max_degree", "n_tests", "n_distinct_tests",
    "graphs_tp", "graphs_fp", "graphs_fn", "graphs_tn",
    "features_tp", "features_fp", "features_fn", "features_tn", "why",
)  # fmt: skip
_AVERAGED = ("kl", "n_features", "n_tests", "n_distinct_tests", "graphs_f1", "features_f1")


@dataclass(frozen=True)
class Results:
    """What was found in the cells of a plan, and how long each took."""

    plan: Plan
    records: dict[Cell, dict[str, Any]]
    times: dict[Cell, dict[str, Any]]

    @classmethod
    def of(cls, plan: Plan, store: Store) -> "Results":
        """Read the files of a finished run."""
        cells = plan.cells()
        return cls(
            plan,
            {cell: store.read(cell) or {} for cell in cells},
            {cell: store.read_times(cell) or {} for cell in cells},
        )

    def over_networks(self, site: Site, contestant: str, field: str, n_networks: int) -> Floats:
        """Return a number for each network; a contestant that the reading leaves alone has the headline's."""
        if contestant not in reading_named(site.reading).changes:
            site = replace(site, reading=HEADLINE.name)
        cells = (Cell(replace(site, network=number), contestant) for number in range(n_networks))
        return np.array([_number(self._all[cell], field) for cell in cells], dtype=np.float64)

    @cached_property
    def _all(self) -> dict[Cell, dict[str, Any]]:
        return {cell: {**record, **self.times[cell]} for cell, record in self.records.items()}


def curve(
    results: Results, study: Study, reading: str, shape: Any, n_variables: int, contestant: str, field: str
) -> Floats:
    """Return a number for each size (rows) and network (columns)."""
    return np.array(
        [
            results.over_networks(
                Site(reading, shape, n_variables, 0, size), contestant, field, study.n_networks
            )
            for size in study.sizes
        ]
    )


def networks_csv(results: Results) -> str:
    """Write every cell of the headline, one a line."""
    lines = (
        [*_where(cell), *(_shown(record.get(name)) for name in _FOUND)]
        for cell, record in results.records.items()
        if cell.site.reading == HEADLINE.name
    )
    return _csv((*_KEYS, *_FOUND), lines)


def times_csv(results: Results) -> str:
    """Write the CPU seconds of every cell of the headline, one a line: the only table that no run repeats."""
    names = ("learn_seconds", "weigh_seconds")
    lines = (
        [*_where(cell), *(f"{record.get(name, float('nan')):.4f}" for name in names)]
        for cell, record in results.times.items()
        if cell.site.reading == HEADLINE.name
    )
    return _csv((*_KEYS, *names), lines)


def means_csv(results: Results) -> str:
    """Write means and standard deviations over networks, for every reading, size and contestant."""
    head = (*(key for key in _KEYS if key != "network"), "n_networks")
    columns = [f"{name}_{what}" for name in _AVERAGED for what in ("mean", "sd")]
    return _csv((*head, *columns), _mean_lines(results))


def _mean_lines(results: Results) -> Iterable[list[Any]]:
    studies = [results.plan.main, *([results.plan.large] if results.plan.large else [])]
    for study in studies:
        for cell in study.cells():
            if cell.site.network:
                continue
            line = [text for key, text in zip(_KEYS, _where(cell), strict=True) if key != "network"]
            line.append(study.n_networks)
            for name in _AVERAGED:
                numbers = results.over_networks(cell.site, cell.contestant, name, study.n_networks)
                line += [_shown(number) for number in mean_and_sd(numbers)]
            yield line


def mean_and_sd(numbers: Floats) -> tuple[float, float]:
    """Return the mean and the standard deviation of a sample; NaN where there are too few."""
    mean = float(numbers.mean()) if numbers.size else float("nan")
    return mean, float(numbers.std(ddof=1)) if numbers.size > 1 else float("nan")


def _number(record: dict[str, Any], field: str) -> float:
    if field.endswith("_f1"):
        kind = field.removesuffix("_f1")
        tp, fp, fn = (record.get(f"{kind}_{name}", 0) for name in ("tp", "fp", "fn"))
        return 2 * tp / (2 * tp + fp + fn) if tp + fp + fn else float("nan")
    if field == "seconds":
        return float(record.get("learn_seconds", "nan")) + float(record.get("weigh_seconds", "nan"))
    value = record.get(field)
    return float("nan") if value is None else float(value)


def _where(cell: Cell) -> list[Any]:
    site = cell.site
    return [site.reading, site.shape, site.n_variables, site.network, site.size, cell.contestant]


def _shown(value: Any) -> str:
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _csv(head: Sequence[str], lines: Iterable[Sequence[Any]]) -> str:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(lines)
    return stream.getvalue()
