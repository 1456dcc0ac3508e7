"""List the types that kernels are called with, in src/unless/kernels/signatures.json: `make signatures`.

It does what users do, on small tables and larger ones, and records the types that each kernel is called with.
The extension of a wheel is built for these types; a call with others is compiled at run time.
"""

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt

import unless
from unless.counting.slices import PackedTable
from unless.datasets import load_titanic, load_ucb_admissions, make_csi
from unless.kernels import extension
from unless.kernels.compiling import Kernel

LEARNERS = (
    "CSGS", "CSPC", "GGS", "GSMN", "IBMAPHC", "ChowLiu", "CSIBMAP", "CSGSSL", "CSMPL", "DTSL", "GSSL"
)  # fmt: skip


def gated_table(n_columns: int, n_rows: int, most_levels: int, seed: int = 0) -> npt.NDArray[np.int64]:
    """Make a table in which each column copies an earlier one in half of the rows, or where a third is 0."""
    rng = np.random.default_rng(seed)
    table = np.zeros((n_rows, n_columns), dtype=np.int64)
    for column in range(n_columns):
        table[:, column] = rng.integers(0, rng.integers(2, most_levels + 1), n_rows)
        if column:
            copied = rng.random(n_rows) < 0.5
            if column > 1 and column % 2:
                copied = table[:, rng.integers(0, column)] == 0
            table[:, column] = np.where(copied, table[:, rng.integers(0, column)], table[:, column])
    return table


def tables() -> Iterator[tuple[str, Any]]:
    """Give tables of all kinds: small, with many contexts, with many levels, numbers, holes, weights."""
    yield "small", load_titanic()
    yield "gated", load_ucb_admissions()
    yield "contexts", unless.read(gated_table(14, 3_000, 4))
    rng = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "survey.csv"
        codes = gated_table(5, 900, 3, seed=2).astype(str)
        numbers = rng.normal(40, 12, 900).round(1).astype(str)
        numbers[rng.random(900) < 0.1] = ""
        codes[rng.random(codes.shape) < 0.05] = ""
        names = rng.integers(0, 40, 900).astype(str)
        weights = rng.uniform(0.5, 2, 900).round(3).astype(str)
        rows = zip(codes.tolist(), numbers, names, weights, strict=True)
        lines = [",".join([*cells, number, f"town {name}", weight]) for cells, number, name, weight in rows]
        file.write_text("\n".join(["a,b,c,d,e,age,town,w", *lines]))
        yield "survey", unless.read(file, weight_column="w")
        yield "holes", unless.read(file, exclude=["w"])


def use(name: str, data: Any, folder: Path, *, feature_searches: bool) -> None:
    """Do with a table what users do."""
    for learner in LEARNERS:
        if learner in ("DTSL", "GSSL") and not feature_searches:
            continue
        est = getattr(unless, learner)().fit(data)
        est.statements_  # noqa: B018 (made when it is asked for)
        unless.save(est, folder / f"{learner}.unless")
        est.report(folder / f"{learner}.html", network=False)
        if learner in ("CSGS", "GGS") and name != "contexts":
            ask_network(est.network(data), data, folder)
    for settings in ({"blankets": "independent"}, {"test": "bayesian"}, {"undecided": "keep"}, {"n_jobs": 2}):
        unless.CSGS(**settings).fit(data)
    for test in ("likelihood_ratio", "bayesian"):
        unless.CSPC(test=test).fit(data)
        unless.GSMN(test=test).fit(data)
    unless.CSGS(work_dir=folder / f"{name}.work").fit(data)
    first, second, third, *_ = data.names
    est = unless.GGS().fit(data)
    est.ask(first, second, given=[third])
    unless.compare_groups(data, first)
    unless.UnlessClassifier(target=first).fit(data).predict_proba(data)


def ask_network(net: Any, data: Any, folder: Path) -> None:
    """Ask a network all kinds of questions."""
    first, second, *_ = data.names
    level = data.domain.variables[1].levels[0]
    for method in ("exact", "gibbs", "belief"):
        net.query([first], evidence={second: level}, method=method)
    net.query([first, second])
    net.marginals()
    net.map_query()
    net.map_query([first], evidence={second: level})
    net.sample(50, random_state=0)
    net.sample_codes(50, random_state=0, method="gibbs")
    net.score(data)
    net.pseudo_log_likelihood(data)
    net.conditional_marginal_log_likelihood(data)
    net.predict(net.sample(20, random_state=1), first)
    unless.save(net, folder / "net.unless")
    unless.write_model(net, folder / "net.bif")


def fit_all_ways(data: Any) -> None:
    """Fit weights by every prior and objective."""
    est = unless.CSGS().fit(data)
    nets = [
        est.network(data, prior=prior) for prior in ("validate", unless.Laplace(1.0), unless.Gaussian(2.0))
    ]
    est.network(data, objective="likelihood")
    est.network(data, features="pairs", relative_tolerance=1e-3)
    unless.weight_intervals(nets[2], data)
    unless.kl_divergence(nets[0], nets[2])
    unless.compare_structures(nets[0], nets[2])


def ask_hard_networks() -> None:
    """Ask networks that exact answers condition on gates for, and that chains are caught in one mode of."""
    wide = make_csi(12, random_state=0)
    wide.query([wide.domain.names[0]], method="exact")
    # What holds of one column holds of the next: no change of a single one is possible.
    domain = unless.Domain(tuple(unless.Variable(name, ("no", "yes")) for name in "abc"))
    features = unless.Graph(domain, [("a", "b"), ("b", "c")]).features()
    differ = [len({level for _, level, _ in one}) > 1 for one in features.arrays.literals()]
    caught = unless.LogLinearModel(features, np.where(differ, -np.inf, 0.5))
    caught.query(["a"], method="gibbs", random_state=0)


def count_directly(data: Any) -> None:
    """Ask the table that learners pack for counts, as the tests of all sources of counts do."""
    PackedTable.of(data).count(0, 1, {2: 0})


def described(argument: Any) -> Any:
    """Return the type of an argument as `signatures.json` has it; of a tuple its name and its parts."""
    if isinstance(argument, tuple):
        return ["" if type(argument) is tuple else type(argument).__name__, *map(described, argument)]
    return extension.type_name(argument)


@contextmanager
def recording() -> Iterator[dict[str, list[Any]]]:
    """Give the signatures of the kernels that are called inside, as they come."""
    found: dict[str, list[Any]] = {}
    call, one_thread = Kernel.__call__, Lock()

    def noting(kernel: Kernel, *arguments: Any) -> Any:
        signature = list(map(described, arguments))
        with one_thread:
            known = found.setdefault(kernel.name, [])
            if signature not in known:
                known.append(signature)
        return call(kernel, *arguments)

    with patch.object(Kernel, "__call__", noting):
        yield found


def kernels_of_work() -> dict[str, list[str]]:
    """Return the kernels that each kind of work calls on a table whose graphs are learned by cohorts.

    What takes long there (DTSL, GSSL, weights) is done on a small table.
    """
    found: dict[str, list[str]] = {}
    data = unless.read(gated_table(14, 3_000, 4))
    small = load_titanic()
    for learner in LEARNERS:
        with recording() as called:
            est = getattr(unless, learner)().fit(small if learner in ("DTSL", "GSSL") else data)
        found[learner] = sorted(called)
    est = unless.CSGS().fit(data)
    with recording() as called:
        est.statements_  # noqa: B018 (made when it is asked for)
    found["statements"] = sorted(called)
    est = unless.CSGS().fit(small)
    with recording() as called:
        est.network(small)
    found["weights"] = sorted(called)
    return found


def write(path: Path, listed: dict[str, Any]) -> None:
    """Write a line for each name."""
    lines = [f"{json.dumps(name)}: {json.dumps(listed[name])}" for name in sorted(listed)]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def main() -> None:
    """Do the work of users and write down what it asked of kernels."""
    with tempfile.TemporaryDirectory() as folder, recording() as found:
        for name, data in tables():
            use(name, data, Path(folder), feature_searches=name in ("small", "gated"))
            if name in ("small", "gated"):
                fit_all_ways(data)
                count_directly(data)
        ask_hard_networks()
    write(extension.SIGNATURES, {kernel: sorted(found[kernel], key=str) for kernel in found})
    write(extension.WORK, kernels_of_work())
    print(f"{sum(map(len, found.values()))} signatures of {len(found)} kernels")


if __name__ == "__main__":
    main()
