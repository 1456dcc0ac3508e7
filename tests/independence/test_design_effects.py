"""Weights, clusters and strata in tests: the design effect, and the level it keeps."""

import numpy as np
import pytest

import unless
from twins.naive_design import naive_design_effect
from unless.independence.design_effects import Correction
from unless.independence.statistics import Statistic
from unless.referee.regressions import RegressionTable
from unless.referee.verdicts import Referee


def survey(seed, n=400, n_clusters=60, n_strata=1, levels=(3, 2, 2), alike=0.8):
    rng = np.random.default_rng(seed)
    strata = rng.integers(0, n_strata, n_clusters)
    clusters = rng.integers(0, n_clusters, n)
    moods = rng.normal(size=(n_clusters, len(levels)))
    table = {}
    for place, k in enumerate(levels):
        score = moods[clusters, place] * alike + rng.normal(size=n)
        table["abc"[place]] = np.digitize(score, np.quantile(score, np.arange(1, k) / k))
    table["w"] = rng.lognormal(0, 0.8, n)
    table["psu"] = clusters
    table["region"] = strata[clusters]
    return table


def read(table, **design):
    columns = {name: [str(one) for one in table[name]] for name in "abc"}
    columns |= {name: table[name].tolist() for name in design.values()}
    return unless.read(columns, **design)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "design",
    [
        {"weight_column": "w"},
        {"cluster_column": "psu"},
        {"weight_column": "w", "cluster_column": "psu"},
        {"weight_column": "w", "strata_column": "region"},
        {"weight_column": "w", "cluster_column": "psu", "strata_column": "region"},
    ],
    ids=lambda design: "+".join(design.values()),
)
def test_design_effects_are_those_of_the_rows(seed, design):
    table = survey(seed, n_strata=3)
    data = read(table, **design)
    weights = table["w"] if "weight_column" in design else np.ones(len(table["w"]))
    clusters, strata = (
        table[design[one]] if one in design else None for one in ("cluster_column", "strata_column")
    )
    read_table = RegressionTable(data)
    for a, b in ((0, 1), (0, 2), (1, 2)):
        expected, kish = naive_design_effect(table["abc"[a]], table["abc"[b]], weights, clusters, strata)
        assert read_table.correction(a, b).factor == pytest.approx(expected)
        assert read_table.counts.sum() == pytest.approx(len(weights) / kish)


def test_equal_weights_change_nothing_but_the_last_digits():
    table = survey(3)
    plain = read(table)
    weighted = unless.read(
        {**{n: [str(x) for x in table[n]] for n in "abc"}, "w": [2.5] * 400}, weight_column="w"
    )
    assert weighted.design.n_effective == pytest.approx(400)
    # Without clusters a row varies as chance has it, but for one degree of freedom.
    assert RegressionTable(weighted).correction(0, 1).factor == pytest.approx(1, abs=0.02)
    assert weighted.self_weighting() == plain


def test_a_stratum_of_one_cluster_is_left_out():
    table = survey(1, n_strata=1)
    table["region"] = np.where(table["psu"] == 5, 1, 0)
    data = read(table, cluster_column="psu", strata_column="region")
    expected, _ = naive_design_effect(table["a"], table["b"], np.ones(400), table["psu"], table["region"])
    assert RegressionTable(data).correction(0, 1).factor == pytest.approx(expected)


def test_few_clusters_take_the_f_distribution():
    few = RegressionTable(read(survey(2, n_clusters=8), cluster_column="psu"))
    many = RegressionTable(read(survey(2, n_clusters=200), cluster_column="psu"))
    found = Statistic(12.0, 2)
    values = [
        table.survey.corrected(found, Correction(1.0, 0.0, table.correction(0, 1).freedom)).value
        for table in (few, many)
    ]
    assert values[0] < values[1] < 12.0
    assert few.survey.corrected(Statistic(0.0, 0), Correction(2.0)) == Statistic(0.0, 0)
    assert few.survey.corrected(found, Correction(2.0)).value == pytest.approx(6)


@pytest.mark.parametrize(
    "by", [Correction(1.3), Correction(1.3, 0.4), Correction(2.0, 0.4, 17.0), Correction(0.9, 0.0, 50.0)]
)
def test_strength_is_that_of_the_divided_statistic(by):
    effects = RegressionTable(read(survey(2), weight_column="w")).survey
    for value, df in ((0.3, 1), (5.0, 2), (40.0, 4), (400.0, 6)):
        corrected = effects.corrected(Statistic(value, df), by)
        assert corrected.value <= value / by.factor * (1 + 1e-9)
        if corrected.value < value / by.factor - 1e-9:
            assert effects.divided(corrected, by) == pytest.approx(value / by.factor)


def test_a_few_large_weights_leave_few_rows_to_estimate_from():
    table = survey(5)
    even = RegressionTable(read(table, weight_column="w")).correction(0, 1).freedom
    table["w"] = np.where(np.arange(400) < 4, 60.0, 1.0)
    assert RegressionTable(read(table, weight_column="w")).correction(0, 1).freedom < 20 < even


def rejected(make, level, **design):
    """Count the tables of independent columns in which the pair of the first two has a p below a level."""
    n_corrected = n_plain = 0
    for seed in range(40):
        table = make(seed)
        for is_plain in (False, True):
            data = read(table) if is_plain else read(table, **design)
            verdict = next(one for one in Referee(data).judge() if one.pair == (0, 1))
            if is_plain:
                n_plain += verdict.p < level
            else:
                n_corrected += verdict.p < level
    return n_corrected, n_plain


def drawn_by_weight(seed):
    """Draw rows that have x and y alike more often; the weights undo it."""
    rng = np.random.default_rng(seed)
    n = 12_000
    columns = {"a": rng.integers(0, 3, n), "b": rng.integers(0, 2, n), "c": rng.integers(0, 2, n)}
    chance = np.where(columns["a"] % 2 == columns["b"], 1.0, 0.4) * 0.05
    kept = rng.random(n) < chance
    return {name: values[kept] for name, values in columns.items()} | {"w": 1 / chance[kept]}


def test_weights_undo_how_rows_were_drawn():
    corrected, plain = rejected(drawn_by_weight, 0.05, weight_column="w")
    # Of 40, 2 are expected; 7 or more have a chance of .4 %.
    assert corrected <= 6
    assert plain == 40


def test_clusters_make_no_links():
    corrected, plain = rejected(
        lambda seed: survey(seed, n=600, n_clusters=20, alike=1.5), 0.05, cluster_column="psu"
    )
    assert corrected <= 6
    assert plain >= 10


def test_sentences_tell_the_design_effect_and_weighted_shares(tmp_path):
    rng = np.random.default_rng(4)
    n = 1500
    sex, smokes = rng.integers(0, 2, n), rng.integers(0, 2, n)
    smokes = np.where(rng.random(n) < 0.5, sex, smokes)
    # Women who smoke count three times as much.
    table = {
        "sex": ["f" if one else "m" for one in sex],
        "smokes": ["yes" if one else "no" for one in smokes],
    }
    table |= {"other": rng.integers(0, 2, n).tolist(), "w": np.where(smokes & sex, 3.0, 1.0).tolist()}
    est = unless.learn(table, weight_column="w")
    (finding,) = est.statements_.findings
    assert finding.pair == ("sex", "smokes")
    side = finding.evidence[0]
    weights = np.asarray(table["w"])
    kish = n * (weights**2).sum() / weights.sum() ** 2
    assert side.n_rows == n
    # The design effect of a pair may be another than that of a mean.
    assert side.design_effect == pytest.approx(kish, rel=0.3)
    assert side.to_dict()["design_effect"] == pytest.approx(side.design_effect)
    told, there = side.contrast, np.asarray(table[side.contrast.other]) == side.contrast.at_high
    is_level = np.asarray(table[told.column]) == told.level
    assert told.high == pytest.approx(weights[there & is_level].sum() / weights[there].sum(), abs=0.01)
    unless.save(est, tmp_path / "x.unless")
    again = unless.load(tmp_path / "x.unless")
    assert again.statements_.findings[0].evidence[0].design_effect == side.design_effect
    assert again.data_.n_rows == est.data_.self_weighting().n_rows


def test_a_survey_is_asked_and_compared_as_rows_drawn_alike():
    table = drawn_by_weight(1)
    est = unless.GGS().fit(read(table, weight_column="w"))
    assert est.ask("a", "b").data.p > 0.01
    assert unless.ask(est.data_, "a", "b").p == est.ask("a", "b").data.p
    assert est.data_.n_rows == len(table["w"])
    found = unless.compare_groups(read(table, weight_column="w"), "c")
    assert found.notes[0].startswith("The table is a survey (w): its ")
    both = unless.compare_tables(read(table, weight_column="w"), read(drawn_by_weight(2), weight_column="w"))
    assert [note.split(" is ")[0] for note in both.notes[:2]] == ["first", "second"]
