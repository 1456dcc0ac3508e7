"""Finished runs, looked up by what they are: numbers over networks, means, and tables as CSV."""

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from studies.paper.plan import Plan, Run, Study, Table
from studies.paper.store import Store
from studies.paper.variants import HEADLINE, variant_named

Floats = npt.NDArray[np.float64]
_KEYS = ("variant", "shape", "n_variables", "network", "size", "method")
_FOUND = (
    "kl", "kl_error", "converged", "n_features", "n_contexts", "max_degree", "n_tests", "n_distinct_tests",
    "graphs_tp", "graphs_fp", "graphs_fn", "graphs_tn",
    "features_tp", "features_fp", "features_fn", "features_tn", "why",
)  # fmt: skip
_AVERAGED = ("kl", "n_features", "n_tests", "n_distinct_tests", "graphs_f1", "features_f1")


@dataclass(frozen=True)
class Results:
    """What was found in the runs of a plan, and how long each took."""

    plan: Plan
    records: dict[Run, dict[str, Any]]
    times: dict[Run, dict[str, Any]]

    @classmethod
    def of(cls, plan: Plan, store: Store) -> "Results":
        """Read the files of a finished run."""
        runs = plan.runs()
        return cls(
            plan,
            {run: store.read(run) or {} for run in runs},
            {run: store.read_times(run) or {} for run in runs},
        )

    def over_networks(self, table: Table, method: str, field: str, n_networks: int) -> Floats:
        """Return a number for each network; a method that the variant leaves alone has the headline's."""
        if method not in variant_named(table.variant).changes:
            table = replace(table, variant=HEADLINE.name)
        runs = (Run(replace(table, network=number), method) for number in range(n_networks))
        return np.array([_number(self._all.get(run, {}), field) for run in runs], dtype=np.float64)

    @cached_property
    def _all(self) -> dict[Run, dict[str, Any]]:
        return {run: {**record, **self.times[run]} for run, record in self.records.items()}


def curve(
    results: Results, study: Study, variant: str, shape: Any, n_variables: int, method: str, field: str
) -> Floats:
    """Return a number for each size (rows) and network (columns)."""
    return np.array(
        [
            results.over_networks(
                Table(variant, shape, n_variables, 0, size), method, field, study.n_networks
            )
            for size in study.sizes
        ]
    )


def networks_csv(results: Results) -> str:
    """Write every run of the headline, one a line."""
    lines = (
        [*_where(run), *(_shown(record.get(name)) for name in _FOUND)]
        for run, record in results.records.items()
        if run.table.variant == HEADLINE.name
    )
    return _csv((*_KEYS, *_FOUND), lines)


def times_csv(results: Results) -> str:
    """Write the CPU seconds of every run of the headline, one a line: the only table that no run repeats."""
    names = ("learn_seconds", "weigh_seconds")
    lines = (
        [*_where(run), *(f"{record.get(name, float('nan')):.4f}" for name in names)]
        for run, record in results.times.items()
        if run.table.variant == HEADLINE.name
    )
    return _csv((*_KEYS, *names), lines)


def means_csv(results: Results) -> str:
    """Write means and standard deviations over networks, for every variant, size and method."""
    head = (*(key for key in _KEYS if key != "network"), "n_networks")
    columns = [f"{name}_{what}" for name in _AVERAGED for what in ("mean", "sd")]
    return _csv((*head, *columns), _mean_lines(results))


def _mean_lines(results: Results) -> Iterable[list[Any]]:
    studies = [results.plan.main, *([results.plan.large] if results.plan.large else [])]
    for study in studies:
        for run in study.runs():
            if run.table.network:
                continue
            line = [text for key, text in zip(_KEYS, _where(run), strict=True) if key != "network"]
            line.append(study.n_networks)
            for name in _AVERAGED:
                numbers = results.over_networks(run.table, run.method, name, study.n_networks)
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


def _where(run: Run) -> list[Any]:
    table = run.table
    return [table.variant, table.shape, table.n_variables, table.network, table.size, run.method]


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
