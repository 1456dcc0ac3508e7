"""Weights, clusters and strata read beside the rows."""

import json

import numpy as np
import pytest

import unless
from unless.data.dataset import whole_numbers
from unless.errors import DataError, SettingError, UnknownName

RNG = np.random.default_rng(7)
N = 300
TABLE = {
    "sex": RNG.choice(["f", "m"], N).tolist(),
    "vote": RNG.choice(["a", "b", "c"], N).tolist(),
    "w": RNG.uniform(0.5, 4.5, N).tolist(),
    "house": RNG.integers(0, 90, N).tolist(),
    "region": RNG.choice(["n", "s"], N).tolist(),
}
DESIGN = {"weight_column": "w", "cluster_column": "house", "strata_column": "region"}


def test_rows_keep_their_weights():
    data = unless.read(TABLE, **DESIGN)
    assert data.names == ("sex", "vote")
    assert data.n_rows == N
    weights = np.asarray(TABLE["w"])
    assert data.weights.sum() == pytest.approx(N)
    sex, vote = data.rows.T
    inside = (np.asarray(TABLE["sex"]) == data.domain["sex"].levels[sex[0]]) & (
        np.asarray(TABLE["vote"]) == data.domain["vote"].levels[vote[0]]
    )
    assert data.weights[0] == pytest.approx(weights[inside].sum() / weights.mean())
    assert data.design.n_effective == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
    assert data.design.columns == ("w", "house", "region")
    # A house of two regions is two clusters.
    assert data.design.n_clusters == len(set(zip(TABLE["house"], TABLE["region"], strict=True)))
    assert len(data.notes) == 2


def test_the_order_of_rows_changes_no_bit():
    order = RNG.permutation(N)
    first = unless.read(TABLE, **DESIGN)
    second = unless.read({name: [values[i] for i in order] for name, values in TABLE.items()}, **DESIGN)
    assert first.notes == second.notes
    for one, other in (
        (first.weights, second.weights),
        (first.design.weights, second.design.weights),
        (first.design.squares, second.design.squares),
        (first.design.clusters, second.design.clusters),
        (first.detail.rows, second.detail.rows),
    ):
        assert one.tobytes() == other.tobytes()


def test_a_plan_keeps_the_design(tmp_path):
    plan = unless.prepare(TABLE, **DESIGN)
    assert [plan[name].done for name in ("w", "house", "region")] == [
        "weights the rows",
        "names clusters of rows",
        "names the strata of the sample",
    ]
    plan.save(tmp_path / "plan.json")
    again = unless.read(TABLE, plan=tmp_path / "plan.json")
    assert again.weights.tobytes() == unless.read(TABLE, **DESIGN).weights.tobytes()
    roles = {"w": "weight", "house": "cluster", "region": "strata"}
    assert unless.read(TABLE, roles=roles).weights.tobytes() == again.weights.tobytes()
    document = json.loads((tmp_path / "plan.json").read_text())
    document["columns"][0]["role"] = "weight"
    with pytest.raises(unless.errors.FileFormatError, match="two columns are said to be one that weights"):
        unless.Plan.from_dict(document)


def test_weights_that_are_found_are_used_unless_somebody_says_no():
    table = {**TABLE, "survey_weight": TABLE["w"], "final_weight": RNG.uniform(1, 2, N).tolist()}
    del table["w"]
    data = unless.read(table)
    assert data.design.columns == ("survey_weight",)
    assert data.plan["final_weight"].role == "excluded"
    assert unless.read(table, weight_column="final_weight").design.columns == ("final_weight",)
    assert unless.read(table, exclude=["survey_weight", "final_weight"]).weights is None
    assert "survey_weight" in unless.read(table, roles={"survey_weight": "number"}).names


def test_strata_may_be_related_too():
    assert unless.read(TABLE, columns=["sex", "vote", "region"], strata_column="region").names == (
        "sex",
        "vote",
        "region",
    )
    assert unless.read(TABLE, columns=["sex", "vote"], **DESIGN).names == ("sex", "vote")


def test_selected_columns_keep_weights():
    data = unless.read(TABLE, **DESIGN).select(["vote"])
    whole = unless.read(TABLE, **DESIGN)
    votes = [whole.weights[whole.rows[:, 1] == code].sum() for code in range(3)]
    assert data.weights == pytest.approx(votes)
    assert data.design.n_effective == pytest.approx(whole.design.n_effective)


def test_rows_without_a_weight_are_left_out_and_told():
    weights = [None, 0.0, *TABLE["w"][2:]]
    data = unless.read({**TABLE, "w": weights}, weight_column="w", exclude=["house", "region"])
    assert data.n_rows == N - 2
    assert "Left out 1 row without a value in 'w'." in data.notes
    assert "Left out 1 row whose weight is 0." in data.notes


def test_weights_go_with_counts_and_missing_values():
    sex = [None if i % 7 == 0 else one for i, one in enumerate(TABLE["sex"])]
    table = {**TABLE, "sex": sex, "third": RNG.choice(["x", "y"], N).tolist(), "n": [2] * N}
    data = unless.read(table, **DESIGN, count_column="n", missing="drop")
    assert data.n_rows == 2 * sum(one is not None for one in sex)
    assert len(data.weights) == len(data.counts)
    kept = np.array([one is not None for one in sex])
    weights = np.asarray(TABLE["w"])
    assert data.weights.sum() == pytest.approx(2 * weights[kept].sum() / weights.mean())
    open_ended = unless.read(table, **DESIGN, count_column="n")
    assert open_ended.detail.design.weights.sum() == pytest.approx(2 * N)


def test_what_is_no_weight_is_refused():
    def refused(kind, match, table=None, **settings):
        with pytest.raises(kind, match=match):
            unless.read({**TABLE, **(table or {})}, **settings)

    bad = [*TABLE["w"][:-1], -1]
    refused(DataError, "Row 300 of weight column 'w' holds '-1", {"w": bad}, weight_column="w")
    refused(DataError, "Row 1 of weight column 'vote' holds '", weight_column="vote")
    refused(
        DataError, "No row of weight column 'w' has a weight above 0", {"w": [0.0] * N}, weight_column="w"
    )
    refused(UnknownName, "weight_column= names 'weights'", weight_column="weights")
    refused(SettingError, "'w' cannot be two of", weight_column="w", cluster_column="w")
    refused(SettingError, "Both 'w' and 'house' are to be", weight_column="w", roles={"house": "weight"})
    refused(SettingError, "There are 1 clusters in 'one'", {"one": [1] * N}, cluster_column="one")
    with pytest.raises(SettingError, match="read already"):
        unless.read(unless.read(TABLE), weight_column="w")


@pytest.mark.parametrize("seed", range(5))
def test_rounded_weights_follow_every_run_of_rows(seed):
    weights = np.random.default_rng(seed).gamma(0.5, 2, 200)
    whole = whole_numbers(weights)
    assert whole.min() >= 0
    assert np.abs(np.cumsum(whole) - np.cumsum(weights)).max() <= 0.51
