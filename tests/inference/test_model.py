"""What a model can be asked, and how its answers read."""

import pickle

import numpy as np
import pytest

from inference.models import domain_of, model_of, random_model
from twins import brute_force
from unless.data.domain import Context, Domain, Variable
from unless.errors import DataError, SettingError, TooLarge, UnknownLevel, UnknownName
from unless.inference.model import LogLinearModel
from unless.inference.results import Distribution
from unless.structures.graph import Feature, FeatureSet

DOMAIN = Domain((Variable("Admit", ("Admitted", "Rejected")), Variable("Size", ("1", "2", "3"), "integer")))


@pytest.fixture
def model():
    features = FeatureSet(
        DOMAIN, [Feature.of({"Admit": "Admitted"}), Feature.of({"Admit": "Rejected", "Size": 3})]
    )
    return LogLinearModel(features, [1.0, 2.0])


def test_weights_must_fit_the_features(model):
    with pytest.raises(SettingError, match="1 weights for 2 features"):
        LogLinearModel(model.features, [1.0])
    with pytest.raises(SettingError, match="not a number"):
        LogLinearModel(model.features, [1.0, np.nan])


def test_evidence_is_given_by_label_or_by_the_value_it_came_from(model):
    by_value, by_label = model.query("Admit", {"Size": 3}), model.query("Admit", {"Size": "3"})
    assert by_value.as_dict() == by_label.as_dict()
    assert by_value["Rejected"] == pytest.approx(np.exp(2) / (np.exp(1) + np.exp(2)))
    assert by_value.evidence == {"Size": "3"}
    with pytest.raises(UnknownLevel, match="'4' is not a level"):
        model.query("Admit", {"Size": 4})
    with pytest.raises(UnknownName, match="did you mean 'Size'"):
        model.query("size")


def test_a_joint_answer_is_read_by_labels(model):
    answer = model.query(["Size", "Admit"])
    assert answer.names == ("Size", "Admit")
    assert answer.probabilities.shape == (3, 2)
    assert answer["3", "Rejected"] == answer[{"Admit": "Rejected", "Size": 3}] == answer.probabilities[2, 1]
    assert list(answer)[:2] == [("1", "Admitted"), ("1", "Rejected")]
    assert len(answer) == 6
    assert sum(answer.values()) == pytest.approx(1)
    assert answer.most_probable() == {"Size": "3", "Admit": "Rejected"}
    assert (answer.method, answer.error) == ("exact", None)
    for key in ("3", {"Size": 3}, ("3", "Rejected", "x")):
        with pytest.raises(UnknownName):
            answer[key]


def test_a_query_about_evidence_is_certain(model):
    assert model.query("Admit", {"Admit": "Rejected"}).as_dict() == {"Admitted": 0.0, "Rejected": 1.0}
    joint = model.query(["Admit", "Size"], {"Admit": "Rejected"})
    assert joint.probabilities[0].tolist() == [0.0, 0.0, 0.0]
    assert joint.probabilities.sum() == pytest.approx(1)


def test_answers_read_well_and_are_escaped():
    variable = Variable("<b>", tuple(f"<{code}>" for code in range(25)))
    answer = Distribution((variable,), np.full(25, 0.04), error=np.full(25, 0.001), method="gibbs")
    assert repr(answer).startswith("<Distribution of <b>, gibbs>\n<0>: 0.0400 ± 0.0010\n")
    assert repr(answer).endswith("... and 5 more")
    assert "<td><bdi>&lt;0&gt;</bdi></td><td><bdi>0.0400 ± 0.0010</bdi></td>" in answer._repr_html_()
    assert "<b>" not in answer._repr_html_()


def test_marginals_are_a_mapping_by_name(model):
    marginals = model.marginals({"Size": 1})
    assert list(marginals) == ["Admit", "Size"]
    assert marginals["Admit"].as_dict() == pytest.approx(model.query("Admit", {"Size": 1}).as_dict())
    assert marginals["Size"]["1"] == 1.0
    assert marginals.log_partition == pytest.approx(model.log_partition({"Size": 1}))
    assert repr(marginals) == "<Marginals of 2 variables given Size = 1, exact>"


@pytest.mark.parametrize("method", ["gibbs", "belief"])
def test_marginals_by_other_methods_say_so(model, method):
    marginals = model.marginals({"Size": 1}, method=method, random_state=0)
    assert marginals.method == marginals["Admit"].method == method
    assert marginals.log_partition is None
    assert marginals["Admit"]["Admitted"] == pytest.approx(
        model.query("Admit", {"Size": 1})["Admitted"], abs=0.05
    )


def test_whole_tables_are_predicted_filled_and_scored(model):
    table = {"Size": [3, 1], "Admit": [None, None]}
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(table)
    np.testing.assert_allclose(
        model.predict_proba(frame, "Admit")[0], model.query("Admit", {"Size": 3}).probabilities
    )
    assert model.predict(frame, "Admit").tolist() == ["Rejected", "Admitted"]
    full = model.impute(frame)
    assert full["Admit"].tolist() == ["Rejected", "Admitted"]
    assert model.score(full) == pytest.approx(
        np.mean(
            [
                np.log(model.probability({"Size": s, "Admit": a}))
                for s, a in zip(*full.to_dict("list").values(), strict=True)
            ]
        )
    )


def test_the_most_probable_assignment_comes_with_its_probability(model):
    best = model.map_query()
    assert isinstance(best, Context)
    assert best == {"Admit": "Rejected", "Size": "3"}
    assert best.log_probability == pytest.approx(np.log(model.probability(best)))
    some = model.map_query("Admit", {"Size": 1})
    assert some == {"Admit": "Admitted"}
    assert some.log_probability == pytest.approx(np.log(model.query("Admit", {"Size": 1})["Admitted"]))
    # Summed over the sizes, the more probable answer is another one.
    assert model.map_query("Admit") == model.query("Admit").most_probable()


def test_probabilities_of_assignments(model):
    assert model.probability({}) == pytest.approx(1)
    assert model.probability({"Admit": "Admitted"}) == pytest.approx(model.query("Admit")["Admitted"])
    assert model.probability({"Admit": "Admitted"}, {"Admit": "Rejected"}) == 0.0


def test_log_likelihoods_of_all_states_sum_to_one():
    model = random_model(np.random.default_rng(0), 5)
    states = np.indices(model.domain.n_levels).reshape(5, -1).T.astype(np.uint16)
    logs = model.log_likelihood_codes(states)
    assert np.exp(logs).sum() == pytest.approx(1)
    np.testing.assert_allclose(np.exp(logs), brute_force.joint(model, list(range(5))).ravel(), atol=1e-12)


def test_a_model_without_features_is_uniform():
    model = model_of(domain_of([2, 3, 1]), [])
    assert model.log_partition() == pytest.approx(np.log(6))
    assert model.query("A1").probabilities.tolist() == pytest.approx([1 / 3] * 3)
    assert model.query("A2").as_dict() == {"a": 1.0}


def test_models_do_not_change(model):
    with pytest.raises(ValueError, match="read-only"):
        model.weights[0] = 0
    before = model.log_partition()
    for name in ("weights", "features", "domain", "fit_report"):
        with pytest.raises(AttributeError, match="make another one"):
            setattr(model, name, [5.0, 5.0])
    assert model.log_partition() == before
    again = pickle.loads(pickle.dumps(model))
    assert again.log_partition() == before
    assert repr(model) == "<LogLinearModel: 2 features over 2 variables>"


@pytest.mark.parametrize("method", ["auto", "exact", "gibbs", "belief"])
@pytest.mark.parametrize("n_asked", [26, 63, 64, 65, 1_100])
def test_joint_tables_that_no_method_could_fill_are_refused(method, n_asked):
    # 2^64 is 0, and 2^63 negative, to whole numbers of 64 bits.
    wide = model_of(domain_of([2] * 1_100), [([(0, 0, True), (1, 0, True)], 1.0)])
    with pytest.raises(TooLarge, match="ask about fewer variables"):
        wide.query(wide.domain.names[:n_asked], method=method)
    known = dict.fromkeys(wide.domain.names[:n_asked], "a")
    with pytest.raises(TooLarge, match="ask about fewer variables"):
        wide.query(wide.domain.names[:n_asked], known, method=method)


def test_variables_of_one_level_are_counted_as_axes():
    narrow = model_of(domain_of([1] * 70), [])
    with pytest.raises(TooLarge, match="at most 32 variables"):
        narrow.query(narrow.domain.names)


@pytest.mark.parametrize("names", [[f"A{i}" for i in range(16)], None])
def test_sampling_is_held_to_the_memory_allowed(names):
    wide = model_of(domain_of([2] * 16 if names else [8] * 500), [])
    ask = (lambda **how: wide.query(names, **how)) if names else wide.marginals
    with pytest.raises(TooLarge, match=r"Gibbs sampling .* more than the 64.0 MiB allowed"):
        ask(method="gibbs", max_memory="64 MB")


def test_all_variables_may_be_named_beside_the_evidence():
    model = random_model(np.random.default_rng(1), 25, max_levels=2, locality=4)
    names = model.domain.names
    best = model.map_query(names, {names[0]: "a"})
    rest = model.map_query(evidence={names[0]: "a"})
    assert best == {names[0]: "a", **rest}
    assert best.log_probability == rest.log_probability


def test_arrays_hold_labels_whatever_their_type_and_codes_are_asked_for_by_name():
    domain = Domain((Variable("x0", ("1", "2"), "integer"), Variable("x1", ("1", "2", "3"), "integer")))
    model = LogLinearModel(FeatureSet(domain, [Feature.of({"x0": 1, "x1": 2})]), [1.0])
    labels = np.array([[1, 2], [2, 3]])
    expected = model.log_likelihood(labels)
    for kind in (np.uint16, np.int8, np.int64):
        np.testing.assert_array_equal(model.log_likelihood(labels.astype(kind)), expected)
        np.testing.assert_array_equal(model.log_likelihood_codes((labels - 1).astype(kind)), expected)


@pytest.mark.parametrize(
    "codes", [[0, 1], [[0, 1, 0]], [[0]], [[2, 0]], [[-1, 0]], [[0, 3]], [["0", "1"]], [[0.0, 1.0]]]
)
def test_codes_are_checked(model, codes):
    for ask in (model.log_potentials, model.log_likelihood_codes):
        with pytest.raises(DataError, match=r"code|Code"):
            ask(np.array(codes))


def test_answers_are_mappings_that_know_what_they_do_not_hold(model):
    answer, marginals = model.query("Admit"), model.marginals()
    assert "Admitted" in answer
    assert "zz" not in answer
    assert answer.get("zz") is None
    assert "zz" not in marginals
    assert marginals.get("zz", 7) == 7
    for ask, name in ((answer, "zz"), (marginals, "zz"), (DOMAIN, "zz")):
        with pytest.raises(KeyError) as caught:
            ask[name]
        # A KeyError would show a quoted text.
        assert str(caught.value).startswith(("'zz' is not a level", "There is no variable 'zz'"))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda m: m.query(3), "names no variable"),
        (lambda m: m.query("Admit", "Size"), "give a dictionary"),
        (lambda m: m.query("Admit", method="gibbs", random_state="x"), "random_state='x' is no seed"),
        (lambda m: m.sample(3, random_state=-1), "random_state=-1 is no seed"),
        (lambda m: LogLinearModel(m.features, ["a", "b"]), "A weight is not a number"),
        (lambda m: LogLinearModel(m.features, [[1.0], [1.0, 2.0]]), "A weight is not a number"),
        (lambda m: m.sample(10**13), "draw fewer at a time"),
    ],
)
def test_wrong_arguments_get_a_sentence(model, wrong, message):
    with pytest.raises((SettingError, TooLarge), match=message):
        wrong(model)


@pytest.mark.parametrize("method", ["exact", "gibbs", "belief", "auto"])
def test_a_model_of_no_variables_has_no_marginals(method):
    nothing = LogLinearModel(FeatureSet(Domain(())), [])
    assert dict(nothing.marginals(method=method)) == {}


def test_samples_say_which_way_they_were_drawn(model):
    pd, pa = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    assert isinstance(model.sample(2, 0), pd.DataFrame)
    assert model.sample(2, 0).attrs == {"method": "exact"}
    assert model.sample(2, 0, method="gibbs").attrs == {"method": "gibbs"}
    drawn = model.sample(2, 0, backend="pyarrow")
    assert isinstance(drawn, pa.Table)
    assert drawn.schema.metadata == {b"method": b"exact"}
    assert model.sample_codes(2, 0).notes == ("Drawn exactly.",)
    assert model.sample_codes(2, 0, method="gibbs").notes == ("Drawn by Gibbs sampling.",)


@pytest.mark.parametrize("written", ["01", "1e0", "+1", " 1", "1_0"])
def test_text_that_only_has_the_value_of_a_level_is_not_that_level(model, written):
    with pytest.raises(UnknownLevel):
        model.query("Admit", {"Size": written})
    assert model.query("Admit", {"Size": "1.0"}).evidence == model.query("Admit", {"Size": 1.0}).evidence


def test_answers_keep_their_digits_beside_a_large_partition_function():
    weighted = [([(0, 0, True)], 0.3), ([(1, 0, True)], 0.7)]
    small = model_of(domain_of([2, 3, 2]), weighted)
    large = model_of(domain_of([2, 3, 2]), [*weighted, ([(2, 0, True)], 1e9)])
    assert large.query("A0").probabilities == pytest.approx(small.query("A0").probabilities, abs=1e-14)
    found = large.query(["A0", "A1"]).probabilities
    # What is left of differences between numbers of that size.
    assert found == pytest.approx(small.query(["A0", "A1"]).probabilities, abs=1e-6)
    assert found.sum() == pytest.approx(1, abs=1e-14)


def test_weights_that_cannot_be_added_up_are_refused():
    features = FeatureSet(DOMAIN, [Feature.of({"Size": size}) for size in "123"])
    with pytest.raises(SettingError, match="too large to be added up"):
        LogLinearModel(features, [1e308] * 3)
    assert LogLinearModel(features, [1e308, 0.0, -np.inf]).query("Size")["1"] == 1.0


def test_the_way_out_of_a_model_too_wide_is_one_the_question_has():
    pairs = [([(a, 0, True), (b, 0, True)], 0.1) for a in range(24) for b in range(a)]
    wide = model_of(domain_of([3] * 24), pairs)
    rows = {name: ["a"] for name in wide.domain.names}
    some = {name: [None] * 1 for name in wide.domain.names}
    for ask in (
        wide.map_query,
        wide.log_partition,
        lambda **how: wide.probability({"A0": "a"}, **how),
        lambda **how: wide.log_likelihood_codes(np.zeros((1, 24), dtype=np.uint16), **how),
    ):
        with pytest.raises(TooLarge, match=r"allowed; raise max_memory=\.$"):
            ask(max_memory="64 MB")
    with pytest.raises(TooLarge, match=r"show more of the row, or raise max_memory=\.$"):
        wide.predict_proba({**some, "A1": ["a"]}, "A0", max_memory="64 MB")
    with pytest.raises(TooLarge, match=r"show more of the row"):
        wide.impute({**some, "A1": ["a"]}, max_memory="64 MB")
    with pytest.raises(TooLarge, match=r"use method='gibbs' or method='belief', or raise max_memory=\.$"):
        wide.query("A0", method="exact", max_memory="64 MB")
    with pytest.raises(TooLarge, match=r"use method='gibbs', or raise max_memory=\.$"):
        wide.sample(1, method="exact", max_memory="64 MB")
    assert wide.sample(1, 0, max_memory="64 MB", backend="dict").keys() == rows.keys()
