"""How well one column is predicted from the others: UnlessClassifier beside scikit-learn's classifiers."""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.child import in_child
from benchmarks.options import Options
from benchmarks.result import Entry, Line, Note, Table

TITLE = "Prediction: accuracy, log loss, seconds"
HEAD = """# How well one column is predicted

Written by `python -m benchmarks --only classifier --data DIR --write docs/classifier.md`. Each table is cut
into five folds, stratified by its classes, with seed 1; every method is fitted to the same four folds and
judged by the fifth. How UnlessClassifier works was chosen on folds of seed 0. Figures are means over the rows
of all folds; log loss is in nats, with probabilities kept above 1e-15. All methods see the same columns of
categories: one-hot for logistic regression, as categories for naive Bayes and boosted trees. They are
scikit-learn's (`LogisticRegression`, `LogisticRegressionCV`, `CategoricalNB`,
`HistGradientBoostingClassifier`) with their defaults but for more iterations. One thread each; the machine
is shared, so that seconds are rough.

Machine: {machine}.
"""
TABLES = {
    "adult": ("adult_discretised/data.csv.gz", "income"),
    "mushroom": ("uci_mushroom/data.csv.gz", "class"),
    "car": ("tables/car.csv", "class"),
    "titanic": ("titanic/data.csv.gz", "Survived"),
}
N_FOLDS, SEED = 5, 1
UNLESS, LOGISTIC, TUNED, BAYES, BOOSTED = (
    "UnlessClassifier",
    "logistic regression",
    "logistic regression, penalty chosen",
    "naive Bayes",
    "boosted trees",
)
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
LEAST = 1e-15
# Log loss of UnlessClassifier, as a multiple of that of logistic regression; this many tables must keep it.
MARGIN, TABLES_KEPT = 1.05, 3


def run(options: Options) -> Iterator[Entry]:
    """Compare all methods on each table, in one process for a table."""
    try:
        import sklearn  # noqa: F401
    except ImportError:
        yield Note("scikit-learn is not installed, so there is nothing to compare with.")
        return
    rows, near = [], {LOGISTIC: 0, TUNED: 0}
    for name, (path, target) in TABLES.items():
        found = in_child(compare, str(options.need(path)), target, environment=ONE_THREAD)["methods"]
        rows += [(name, *_cells(method, figures)) for method, figures in found.items()]
        ours = found[UNLESS]["log_loss"]
        ratio = ours / found[BAYES]["log_loss"]
        yield Line(f"{name}: log loss, to that of naive Bayes", ratio, "times", at_most=1.0)
        for other in near:
            ratio = ours / found[other]["log_loss"]
            near[other] += ratio <= MARGIN
            yield Line(f"{name}: log loss, to that of {other}", ratio, "times")
    for other, number in near.items():
        yield Line(f"tables within 5 % of {other}", number, f"of {len(TABLES)}", at_least=TABLES_KEPT)
    headers = ("table", "method", "accuracy", "log loss", "fit, s", "predict, s")
    yield Table(headers, tuple(rows))


def _cells(method: str, figures: dict[str, float]) -> tuple[str, ...]:
    return (
        method,
        f"{figures['accuracy']:.4f}",
        f"{figures['log_loss']:.5f}",
        f"{figures['fit']:.2f}",
        f"{figures['predict']:.2f}",
    )


def compare(path: str, target: str) -> dict[str, Any]:
    """Judge each method on the same folds of one table."""
    import pandas as pd
    from sklearn.model_selection import StratifiedKFold

    frame = pd.read_csv(path, dtype=str).fillna("missing")
    X, y = frame.drop(columns=target), frame[target].to_numpy(dtype=str)
    folds = list(StratifiedKFold(N_FOLDS, shuffle=True, random_state=SEED).split(X, y))
    # Kernels are loaded, or compiled, before anything is timed.
    _methods(X)[UNLESS].fit(X[:500], y[:500])
    return {"methods": {name: _judged(name, X, y, folds) for name in _methods(X)}}


def _judged(name: str, X: Any, y: Any, folds: list[Any]) -> dict[str, float]:
    totals = {"accuracy": 0.0, "log_loss": 0.0, "fit": 0.0, "predict": 0.0}
    for training, held_out in folds:
        method = _methods(X)[name]
        begin = time.perf_counter()
        method.fit(X.iloc[training], y[training])
        fitted = time.perf_counter()
        probabilities = method.predict_proba(X.iloc[held_out])
        totals["predict"] += time.perf_counter() - fitted
        totals["fit"] += fitted - begin
        place = np.searchsorted(method.classes_, y[held_out])
        totals["accuracy"] += float((probabilities.argmax(axis=1) == place).sum())
        of_truth = np.maximum(probabilities[np.arange(len(place)), place], LEAST)
        totals["log_loss"] -= float(np.log(of_truth).sum())
    by = {"accuracy": len(y), "log_loss": len(y), "fit": len(folds), "predict": len(folds)}
    return {figure: total / by[figure] for figure, total in totals.items()}


def _methods(X: Any) -> dict[str, Any]:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
    from sklearn.model_selection import StratifiedKFold
    from sklearn.naive_bayes import CategoricalNB
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

    import unless

    # All levels of the table, so that none is strange in a fold; what was not seen counts nothing.
    levels = [sorted(X[name].unique()) for name in X.columns]
    one_hot, codes = OneHotEncoder(categories=levels), OrdinalEncoder(categories=levels)
    # Shuffled: the rows of some tables are sorted, and folds of neighbours would mislead the choice.
    inner = StratifiedKFold(N_FOLDS, shuffle=True, random_state=0)
    tuned = LogisticRegressionCV(Cs=8, cv=inner, scoring="neg_log_loss", max_iter=5_000)
    bayes = CategoricalNB(min_categories=[len(one) for one in levels])
    trees = HistGradientBoostingClassifier(categorical_features=[True] * len(levels), random_state=0)
    return {
        UNLESS: unless.UnlessClassifier(show_progress=False),
        LOGISTIC: make_pipeline(one_hot, LogisticRegression(max_iter=5_000)),
        TUNED: make_pipeline(one_hot, tuned),
        BAYES: make_pipeline(codes, bayes),
        BOOSTED: make_pipeline(codes, trees),
    }
