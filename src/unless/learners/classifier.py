"""A classifier: one column predicted from the others, by what was learned of them."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from itertools import combinations
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from unless.data.dataset import Dataset, regression_steps
from unless.data.domain import Domain
from unless.errors import DataError, SettingError
from unless.formats.record import Record
from unless.kernels.compiling import plain_if_small
from unless.learners.base import Estimator, make_record, restore
from unless.learners.examples import read_examples, read_features, read_true_labels
from unless.learners.registry import learner_named, make_learner
from unless.learners.settings import check_memory, learned, setting
from unless.runtime.memory import memory_errors_explained
from unless.runtime.progress import BAR_DELAY, progress
from unless.structures.structure import Structure
from unless.typing import Floats, Integers
from unless.weights.conditional import HOLE, ConditionalModel, Tried, fit_conditional

if TYPE_CHECKING:
    from unless.inference.model import LogLinearModel
    from unless.knowledge.statements import Statements

Array = npt.NDArray[Any]
Cells = Integers
# Rows that are predicted at once.
BLOCK = 2**16


class UnlessClassifier(Estimator):
    """Predicts one column of a table from the others, and says what matters for it.

    A learner finds what is linked with the target, and when: `statements_` are about the target, what matters
    most for it first. The prediction is P(target | all other columns) of a log-linear model that is fitted by
    that conditional alone: a weight for each level of each column, and for levels of two columns together
    that the learner joins in a gate or a clique with the target, or that single columns leave unexplained.
    The prior of the weights, and whether pairs are used, is chosen by cross-validation on the training rows.

    A table with names is prepared as `unless.prepare` says; of an array every column is kept, and numbers are
    cut as in a plan. Missing values are a level of their own where the training rows have some. A column of
    which a row hides the value, or shows a level that the training rows do not have, is averaged over, each
    level as often as it was seen.

    A Dataset that was read with its missing values (`Dataset.detail`) is used as it is: a network of all
    columns is fitted by EM, weights are fitted to the completed rows, and a column that a row hides is summed
    over given the rest of the row.

    Rows without a label are left out where the target is a column of the table, and refused in y.

    Parameters
    ----------
    target
        The column to predict, where `fit` is given a table with it; with `fit(X, y)` only a name for y.
    learner
        The name of a learner, its class, or an estimator, which is copied; GGS if None.
    max_memory, show_progress
        As those of `unless.learn`.

    Attributes
    ----------
    classes_
        The labels, sorted.
    estimator_
        The learner, fitted to all columns with the target among them.
    conditional_
        The model that predicts; `conditional_.tried` tells the priors tried and what they were worth.
    network_
        The law of all columns by which hidden columns are summed over, where a Dataset had missing values;
        else None.

    Examples
    --------
    >>> import unless
    >>> data = unless.datasets.load_titanic()
    >>> est = unless.UnlessClassifier(target="Survived").fit(data)
    >>> est.predict([{"Class": "1st", "Sex": "Female", "Age": "Adult"}]).tolist()
    ['Yes']
    >>> est.statements_.findings[0].pair
    ('Sex', 'Survived')
    """

    target: str | None = setting(default=None, check=lambda _, value: _check_target(value), kw_only=False)
    learner: str | type[Estimator] | Estimator | None = setting(default=None, kw_only=False)
    max_memory: int | str | None = setting(default=None, check=check_memory, machine=True)
    show_progress: bool | None = setting(default=None, machine=True)
    classes_: Array = learned()
    estimator_: Estimator = learned()
    conditional_: ConditionalModel = learned()
    network_: "LogLinearModel | None" = learned()

    def fit(self, X: object, y: object = None, sample_weight: Any = None) -> Self:
        """Learn from rows and their labels, or from a table with the target among its columns.

        X is a Dataset, a frame, an array or a file. `sample_weight` gives each row as many copies as it
        says; whole numbers only.
        """
        self.check_settings()
        with memory_errors_explained():
            data, target, classes = read_examples(X, y, self.target, sample_weight, self.show_progress)
            estimator = self._make_learner().fit(data)
            pairs = joined_pairs(estimator.structure_, target)
            network = self._law(estimator, data)
            bar_shown = progress("UnlessClassifier", self.show_progress, after=BAR_DELAY)
            with plain_if_small(20.0 * regression_steps(data)), bar_shown as bar:
                completed = None if network is None else self._completed(network, data)
                bar.begin("fits", None)
                found = fit_conditional(
                    data, target, pairs, completed=completed, max_memory=self.max_memory, step=bar
                )
        self.classes_, self.conditional_, self.network_ = classes, found, network
        self.estimator_, self.target_ = estimator, target
        self.structure_, self.data_, self.notes_ = estimator.structure_, data, data.notes
        self.n_tests_, self.n_distinct_tests_ = estimator.n_tests_, estimator.n_distinct_tests_
        self.max_distinct_tests_ = estimator.max_distinct_tests_
        self._name_columns()
        return self

    def _law(self, estimator: Estimator, data: Dataset) -> "LogLinearModel | None":
        """Fit a network of all columns where rows have missing values."""
        if data.detail is None or not data.detail.missing:
            return None
        return estimator.network(data, max_memory=self.max_memory, show_progress=self.show_progress)

    def _completed(self, network: "LogLinearModel", data: Dataset) -> tuple[Dataset, Floats]:
        from unless.inference.tables import incomplete_rows
        from unless.weights.fit import ExpectationMaximisation

        layout = {"max_memory": self.max_memory}
        holes = incomplete_rows(data)
        return ExpectationMaximisation(network.features, data, holes, layout).complete(network)

    def check_settings(self) -> None:
        """Refuse settings that are wrong whatever the table."""
        super().check_settings()
        self._make_learner().check_settings()

    def _make_learner(self) -> Estimator:
        made = make_learner(self.learner, {}, [])
        return type(made)(**made.get_params())

    def _name_columns(self) -> None:
        names = self._features().names
        self.feature_names_in_, self.n_features_in_ = np.array(names, dtype=object), len(names)

    def _features(self) -> Domain:
        """Return the columns to predict from, in the order of the table."""
        domain: Domain = self.structure_.domain
        return domain.select(name for name in domain.names if name != self.target_)

    def predict_proba(self, X: object) -> Floats:
        """Return, for each row, the probability of each of `classes_`.

        Columns are found by name in a table that has names, else by position. Of a Dataset, which knows no
        order of rows, the distinct rows are predicted in their order.
        """
        self.check_fitted()
        features = self._features()
        cells = read_features(features, X, type(self).__name__, self.show_progress)
        order = [features.index(name) for name in self.conditional_.domain.names]
        blocks = [
            self.conditional_.probabilities(cells[begin : begin + BLOCK, order])
            for begin in range(0, max(1, len(cells)), BLOCK)
        ]
        found = np.concatenate(blocks)
        hidden = np.flatnonzero((cells == HOLE).any(axis=1))
        if self.network_ is not None and len(hidden):
            found[hidden] = self._summed(self.network_, cells[hidden])
        return found

    def _summed(self, network: "LogLinearModel", cells: Cells) -> Floats:
        """Return the probabilities for rows that hide columns, summed over these given the rest."""
        from unless.inference.completing import averages

        domain, names = network.domain, self.conditional_.domain.names
        whole = np.full((len(cells), len(domain)), HOLE)
        whole[:, [domain.index(name) for name in self._features().names]] = cells
        order = [domain.index(name) for name in names]
        return averages(
            network, whole, lambda rows: self.conditional_.probabilities(rows[:, order].astype(np.int64))
        )

    def predict_log_proba(self, X: object) -> Floats:
        """Return, for each row, the log of the probability of each of `classes_`."""
        return np.asarray(np.log(self.predict_proba(X)))

    def predict(self, X: object) -> Array:
        """Return the most probable label of each row; of equals the first."""
        best = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def score(self, X: object, y: object = None, sample_weight: Any = None) -> float:
        """Return the share of rows whose label is predicted; without y, labels are the target's column."""
        self.check_fitted()
        target = str(self.target_)
        table, labels, counts = read_true_labels(X, y, target, self.structure_.domain, self.show_progress)
        weights = counts if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        predicted = self.predict(table)
        if not len(predicted) == len(labels) == len(weights):
            raise DataError(
                f"There are {len(labels):,} labels and {len(weights):,} weights for {len(predicted):,} rows; "
                "give one for each row."
            )
        if not len(labels):
            raise DataError("The table has no rows; there is nothing to score.")
        return float(np.average(predicted == labels, weights=weights))

    def _all_statements(self) -> "Statements":
        self.check_fitted()
        return self.estimator_._all_statements()

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the settings by name; those of the learner, if it is an estimator, as learner__name."""
        settings = super().get_params()
        if deep and isinstance(self.learner, Estimator):
            settings |= {f"learner__{name}": value for name, value in self.learner.get_params().items()}
        return settings

    def set_params(self, **settings: Any) -> Self:
        """Change settings by name; those of the learner are learner__name."""
        own = {name: value for name, value in settings.items() if not name.startswith("learner__")}
        super().set_params(**own)
        inner = {name[9:]: value for name, value in settings.items() if name.startswith("learner__")}
        if inner:
            if not isinstance(self.learner, Estimator):
                raise SettingError(
                    f"learner={self.learner!r} has no settings to change; give an estimator, such as "
                    "UnlessClassifier(learner=unless.GGS())."
                )
            self.learner.set_params(**inner)
        return self

    def answer_settings(self) -> dict[str, Any]:
        """Return the settings that shape the answer; the learner by name."""
        name = None if self.learner is None else type(self._make_learner()).__name__
        return {"target": self.target, "learner": name}

    def _to_record(self) -> tuple[Any, dict[str, Any]]:
        record = make_record(self.estimator_, rows=False, statements=False)
        _, results = self.estimator_._to_record()
        model = self.conditional_
        names = model.domain.names
        energies = [table.ravel() for table in model.tables]
        law = {} if self.network_ is None else {"network": self.network_.weights.tolist()}
        return record.structure, {
            **results,
            **law,
            "learner_name": str(record.learner),
            "learner_settings": json.dumps(dict(record.settings), sort_keys=True),
            "classes": [_plain(one) for one in self.classes_],
            "classes_type": self.classes_.dtype.str,
            "terms": [(names[term[0]], names[term[-1]]) for term in model.terms],
            "energies": np.concatenate([model.intercept, *energies]).tolist(),
            "shares": np.concatenate(model.shares).tolist(),
            "prior_sd": model.sd,
            "tried": [asdict(one) for one in model.tried],
        }

    def _from_record(self, structure: Any, results: Mapping[str, Any]) -> None:
        name, settings = str(results["learner_name"]), json.loads(results["learner_settings"])
        inner = {key: value for key, value in results.items() if key != "target"}
        self.estimator_ = restore(learner_named(name)(), Record(structure, name, settings, inner))
        self.structure_ = self.estimator_.structure_
        if self.learner is not None and repr(self.estimator_) != f"{name}()":
            self.learner = type(self.estimator_)(**self.estimator_.answer_settings())
        self.classes_ = np.array(results["classes"], dtype=np.dtype(results["classes_type"]))
        self.target_ = str(results["target"])
        self.conditional_ = _conditional(self._features(), len(self.classes_), results)
        self.network_ = None
        if "network" in results:
            from unless.inference.model import LogLinearModel
            from unless.structures.structure import features_of

            self.network_ = LogLinearModel(features_of(self.structure_), results["network"])

    def _restored(self) -> None:
        self._name_columns()
        self.estimator_.notes_ = self.notes_
        self.estimator_._statements = self._statements
        if hasattr(self, "data_"):
            self.estimator_.data_ = self.data_

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags

        tags = super().__sklearn_tags__()
        tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
        tags.target_tags.required, tags.input_tags.allow_nan = self.target is None, True
        return tags


def _check_target(target: object) -> None:
    if target is not None and not isinstance(target, str):
        raise SettingError(f"target={target!r} must be the name of a column, or None.")


def joined_pairs(structure: Structure, target: str) -> set[tuple[str, str]]:
    """Return the pairs of columns that a structure joins with a target: in a gate, a clique or a feature."""
    scopes = structure.scopes_with(target)
    return {pair for scope in scopes for pair in combinations(sorted(scope - {target}), 2)}


def _plain(label: Any) -> bool | int | float | str:
    value = label.item() if isinstance(label, np.generic) else label
    return value if isinstance(value, bool | int | float | str) else str(value)


def _conditional(features: Domain, n_classes: int, results: Mapping[str, Any]) -> ConditionalModel:
    """Read the model that predicts from the results of a file."""
    domain = features.select(sorted(features.names))
    terms = []
    for first, second in results["terms"]:
        places = domain.index(first), domain.index(second)
        terms.append(places if first != second else places[:1])
    shapes = [(*(int(domain.n_levels[place]) for place in term), n_classes) for term in terms]
    energies = _cut(results["energies"], [n_classes, *(int(np.prod(shape)) for shape in shapes)])
    tables = tuple(flat.reshape(shape) for flat, shape in zip(energies[1:], shapes, strict=True))
    shares = tuple(_cut(results["shares"], domain.n_levels.tolist()))
    tried = tuple(Tried(**one) for one in results["tried"])
    sd = float(results["prior_sd"])
    return ConditionalModel(domain, tuple(terms), energies[0], tables, shares, sd, tried)


def _cut(values: Any, sizes: list[int]) -> list[Floats]:
    """Cut a list of numbers into arrays of these sizes."""
    numbers = np.array(values, dtype=np.float64)
    if numbers.shape != (sum(sizes),) or not np.isfinite(numbers).all():
        raise SettingError("its weights do not fit its columns and levels")
    return np.split(numbers, np.cumsum(sizes)[:-1])
