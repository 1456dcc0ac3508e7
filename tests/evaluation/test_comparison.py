import json
import math
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unless
from structures.models import steady
from unless import CanonicalModel, Dataset, Domain, FeatureSet, Graph, LogLinearModel, Variable
from unless.datasets import make_csi
from unless.errors import SettingError, TooLarge, UnknownLevel
from unless.evaluation import comparison
from unless.structures.structure import FeatureArrays

KINDS = ("graph", "features", "model", "canonical")
BY = ("graphs", "features")


# --- the slow twin: every context, every pair, in the words of the definition -----------------------------


def contexts_of(domain):
    return [dict(zip(domain.names, labels, strict=True)) for labels in product(*(v.levels for v in domain))]


def asked(structure, by):
    """Return what gives the pairs that interact in a context; None where the structure cannot say."""
    if isinstance(structure, Graph):
        edges = set(structure.edges)
        return lambda context: edges
    if isinstance(structure, CanonicalModel) and by == "graphs":
        graphs = {frozenset(known.items()): set(graph.edges) for known, graph in structure}
        return lambda context: graphs.get(frozenset(context.items()))
    if isinstance(structure, LogLinearModel):
        pairs = zip(structure.features, structure.weights, strict=True)
        features = [feature for feature, weight in pairs if weight != 0]
    else:
        features = list(structure.features() if isinstance(structure, CanonicalModel) else structure)
    told = [
        ([(c.name, c.label, c.equal) for c in feature], list(combinations(feature.scope, 2)))
        for feature in features
    ]
    return lambda context: {
        pair
        for conditions, interacting in told
        if all((context[name] == label) == equal for name, label, equal in conditions)
        for pair in interacting
    }


# Of true positives, false positives, false negatives and true negatives.
PLACES = {(True, True): 0, (False, True): 1, (True, False): 2, (False, False): 3}


def naive(a, b, by, contexts):
    pairs = [tuple(sorted(pair)) for pair in combinations(a.domain.names, 2)]
    found = {pair: [0, 0, 0, 0] for pair in pairs}
    n_left_out = 0
    truth, learned = asked(a, by), asked(b, by)
    for context in contexts:
        there, drawn = truth(context), learned(context)
        if there is None or drawn is None:
            n_left_out += 1
            continue
        for pair in pairs:
            found[pair][PLACES[pair in there, pair in drawn]] += 1
    return found, n_left_out


def check(a, b, by, contexts, result):
    expected, n_left_out = naive(a, b, by, contexts)
    assert {pair: list(counts) for pair, counts in result.pairs.items()} == expected
    totals = [sum(counts[k] for counts in expected.values()) for k in range(4)]
    assert [result.tp, result.fp, result.fn, result.tn] == totals
    assert (result.n_contexts, result.n_left_out) == (len(contexts) - n_left_out, n_left_out)
    assert sum(totals) == result.n_contexts * len(result.pairs)
    assert result.distance == result.fp + result.fn


# --- random structures -------------------------------------------------------------------------------------


def random_domain(rng, most_states=150, max_variables=8):
    n_variables = int(rng.integers(1, max_variables + 1))
    sizes = rng.integers(1 if rng.random() < 0.2 else 2, 5, n_variables)
    while math.prod(sizes.tolist()) > most_states:
        sizes[rng.integers(n_variables)] = 2
        if (sizes <= 2).all():
            break
    return Domain(tuple(Variable(f"V{i}", tuple("abcdef"[:size])) for i, size in enumerate(sizes)))


def shuffled(rng, domain):
    """Return the same domain with variables and levels in another order."""
    variables = [Variable(v.name, tuple(rng.permutation(v.levels).tolist())) for v in domain]
    return Domain(tuple(variables[i] for i in rng.permutation(len(variables))))


def random_features(rng, domain, n_features=None):
    literals = []
    n_features = int(rng.integers(0, 12)) if n_features is None else n_features
    for _ in range(n_features):
        witness = rng.integers(0, domain.n_levels)
        scope = rng.choice(len(domain), int(rng.integers(1, min(4, len(domain)) + 1)), replace=False)
        said = []
        for v in scope.tolist():
            others = [level for level in range(domain.n_levels[v]) if level != witness[v]]
            excluded = [level for level in others if rng.random() < 0.4]
            if excluded and rng.random() < 0.4:
                said += [(v, level, False) for level in excluded]
            else:
                said.append((v, int(witness[v]), True))
        literals.append(said)
    return FeatureSet.from_arrays(domain, FeatureArrays.of(literals))


def random_canonical(rng, domain, share=0.5):
    states = np.array(list(product(*map(range, domain.n_levels.tolist()))), dtype=np.uint16)
    kept = rng.random(len(states)) < share
    kept[rng.integers(len(states))] = True
    rows = states[kept]
    n_pairs = len(domain) * (len(domain) - 1) // 2
    few = rng.random((3, n_pairs)) < rng.random()
    edges = np.packbits(few[rng.integers(0, 3, len(rows))], axis=1, bitorder="little")
    return CanonicalModel.from_edges(domain, rows, np.ones(len(rows), dtype=np.int64), edges)


def random_structure(rng, kind, domain):
    if kind == "graph":
        density = rng.random()
        return Graph(domain, [pair for pair in combinations(domain.names, 2) if rng.random() < density])
    if kind == "canonical":
        return random_canonical(rng, domain)
    features = random_features(rng, domain)
    if kind == "features":
        return features
    return LogLinearModel(features, rng.integers(-1, 2, len(features)).astype(float))


@pytest.mark.parametrize("by", BY)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("part", range(4))
def test_equals_going_through_every_context_and_pair(kind, by, part):
    # 200 structures of each kind, against one of any kind, over columns and levels in another order.
    for seed in range(50 * part, 50 * (part + 1)):
        rng = np.random.default_rng([seed, KINDS.index(kind)])
        domain = random_domain(rng)
        a = random_structure(rng, kind, domain)
        b = random_structure(rng, KINDS[rng.integers(len(KINDS))], shuffled(rng, domain))
        if seed % 2:
            a, b = b, a
        check(a, b, by, contexts_of(domain), unless.compare_structures(a, b, by=by))


@pytest.mark.parametrize("kinds", [("graph", "features"), ("features", "model"), ("features", "features")])
def test_partial_contexts_count_what_complete_ones_do(kinds, monkeypatch):
    for seed in range(100):
        rng = np.random.default_rng(seed)
        domain = random_domain(rng)
        a, b = (random_structure(rng, kind, shuffled(rng, domain)) for kind in kinds)
        expected = unless.compare_structures(a, b)
        with monkeypatch.context() as patched:
            patched.setattr(comparison, "MAX_CONTEXTS", 0)
            # From no splitting at all to splitting down to nothing.
            patched.setattr(comparison, "MAX_CELLS", (1, 6, 2**14)[seed % 3])
            result = unless.compare_structures(a, b)
        assert result == expected
        assert result.pairs == expected.pairs


def test_blocks_of_contexts_add_up(monkeypatch):
    rng = np.random.default_rng(3)
    domain = random_domain(rng, most_states=10**4)
    a, b = random_features(rng, domain, 40), random_canonical(rng, domain)
    data = Dataset.from_codes(domain, b.rows, rng.integers(1, 9, len(b.rows)))
    settings = ({"by": "features"}, {"by": "graphs"}, {"contexts": data, "weighted": True})
    expected = [unless.compare_structures(a, b, **setting) for setting in settings]
    monkeypatch.setattr(comparison, "_block_size", lambda n_variables: 7)
    monkeypatch.setattr(comparison, "_PRODUCT", 20)
    for setting, known in zip(settings, expected, strict=True):
        again = unless.compare_structures(a, b, **setting)
        assert again == known
        assert again.pairs == known.pairs


# --- a pseudo-metric ----------------------------------------------------------------------------------------


@steady
@given(seed=st.integers(0, 2**32 - 1), kinds=st.tuples(*[st.sampled_from(KINDS)] * 3), by=st.sampled_from(BY))
def test_the_distance_is_a_pseudo_metric(seed, kinds, by):
    rng = np.random.default_rng(seed)
    domain = random_domain(rng, most_states=100, max_variables=5)
    a, b, c = (random_structure(rng, kind, shuffled(rng, domain)) for kind in kinds)
    every = contexts_of(domain)
    ask = {name: asked(one, by) for name, one in (("a", a), ("b", b), ("c", c))}
    answered = [x for x in every if None not in [one(x) for one in ask.values()]]
    ab, ba, bc, ac, aa = (
        unless.compare_structures(one, other, by=by, contexts=answered)
        for one, other in ((a, b), (b, a), (b, c), (a, c), (a, a))
    )
    assert (ab.tp, ab.fp, ab.fn, ab.tn) == (ba.tp, ba.fn, ba.fp, ba.tn)
    assert ab.distance == ba.distance >= 0
    assert ac.distance <= ab.distance + bc.distance
    assert aa.distance == 0
    agree = all(ask["a"](context) == ask["b"](context) for context in answered)
    assert (ab.distance == 0) == agree


def test_different_features_may_interact_alike():
    domain = Domain(tuple(Variable(name, ("0", "1")) for name in "ab"))
    whole = FeatureSet.from_arrays(
        domain, FeatureArrays.of([[(0, i, True), (1, j, True)] for i, j in product((0, 1), repeat=2)])
    )
    assert whole != FeatureSet(domain)
    assert unless.compare_structures(Graph(domain, [("a", "b")]), whole).distance == 0
    assert unless.compare_structures(Graph(domain), whole).distance == 4


# --- which contexts -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", BY)
def test_contexts_of_a_table_count_once_or_as_often_as_it_shows_them(by):
    rng = np.random.default_rng(5)
    for _ in range(30):
        domain = random_domain(rng)
        a, b = (random_structure(rng, kind, domain) for kind in ("features", "canonical"))
        other = shuffled(rng, domain)
        codes = rng.integers(0, other.n_levels, (30, len(other)))
        data = Dataset.from_codes(other, codes, rng.integers(1, 4, 30))
        shown = [dict(other.decode(row)) for row in data.rows]
        repeated = [context for context, count in zip(shown, data.counts, strict=True) for _ in range(count)]
        check(a, b, by, shown, unless.compare_structures(a, b, by=by, contexts=data))
        check(a, b, by, shown, unless.compare_structures(a, b, by=by, contexts=repeated))
        for given_as in (data, repeated):
            result = unless.compare_structures(a, b, by=by, contexts=given_as, weighted=True)
            check(a, b, by, repeated, result)


def test_a_canonical_model_answers_only_for_its_own_contexts():
    domain = Domain(tuple(Variable(f"V{i}", ("0", "1")) for i in range(40)))
    rows = np.eye(40, dtype=np.uint16)
    edges = np.zeros((40, 98), dtype=np.uint8)
    edges[0, 0] = 1
    one = CanonicalModel.from_edges(domain, rows, np.ones(40, dtype=np.int64), edges)
    two = CanonicalModel.from_edges(domain, rows[:30], np.ones(30, dtype=np.int64), edges[:30])
    result = unless.compare_structures(one, two)
    assert (result.n_contexts, result.n_left_out) == (30, 2**40 - 30)
    assert (result.tp, result.fp, result.fn) == (1, 0, 0)
    assert "about 10^12" not in repr(result)
    assert "1,099,511,627,746 left out" in repr(result)
    missing = unless.compare_structures(one, two, contexts=[domain.decode(row) for row in rows])
    assert (missing.n_contexts, missing.n_left_out) == (30, 10)


def test_nothing_answered_is_no_success():
    domain = Domain(tuple(Variable(name, ("0", "1")) for name in "ab"))
    one = CanonicalModel.from_edges(
        domain, np.zeros((1, 2), np.uint16), np.ones(1, np.int64), np.zeros((1, 1), np.uint8)
    )
    result = unless.compare_structures(Graph(domain, [("a", "b")]), one, contexts=[{"a": 0, "b": 1}])
    assert result.n_contexts == result.tp + result.fp + result.fn + result.tn == 0
    assert result.n_left_out == 1
    assert math.isnan(result.f1)
    assert unless.compare_structures(one, one, contexts=[]).n_left_out == 0


# --- large domains ------------------------------------------------------------------------------------------


def test_wide_domains_are_counted_exactly():
    domain = Domain(tuple(Variable(f"V{i}", tuple("abc")) for i in range(60)))
    chain = FeatureSet.from_arrays(
        domain, FeatureArrays.of([[(i, 0, True), (i + 1, 0, False), (59, 1, True)] for i in range(58)])
    )
    result = unless.compare_structures(chain, Graph(domain, [("V0", "V1"), ("V0", "V2")]))
    assert result.n_contexts == 3**60
    # V0 = a, V1 != a, V59 = b.
    assert result.pairs["V0", "V1"] == (2 * 3**57, 3**60 - 2 * 3**57, 0, 0)
    assert result.pairs["V0", "V2"] == (0, 3**60, 0, 0)
    assert result.tp + result.fp + result.fn + result.tn == 3**60 * 1770
    # V1 and V59 are in two features: V0 = a, V1 != a and V1 = a, V2 != a.
    assert result.pairs["V1", "V59"].fn == 4 * 3**57
    assert "about 10^29" in repr(result)


def test_sampled_contexts_agree_with_the_count_of_a_wide_domain():
    rng = np.random.default_rng(0)
    domain = Domain(tuple(Variable(f"V{i}", tuple("abcd"[: 2 + i % 3])) for i in range(30)))
    a, b = random_features(rng, domain, 300), random_features(rng, domain, 300)
    exact = unless.compare_structures(a, b)
    sample = Dataset.from_codes(domain, rng.integers(0, domain.n_levels, (20_000, 30)))
    seen = unless.compare_structures(a, b, contexts=sample)
    for pair, counts in exact.pairs.items():
        shares = np.array([float(n) for n in counts]) / float(exact.n_contexts)
        assert np.array(seen.pairs[pair]) / seen.n_contexts == pytest.approx(shares, abs=0.02)


def test_too_much_work_is_refused_with_the_way_out(monkeypatch):
    rng = np.random.default_rng(0)
    domain = Domain(tuple(Variable(f"V{i}", ("0", "1")) for i in range(30)))
    rows = rng.integers(0, 2, (300, 30))
    long = FeatureSet.from_arrays(domain, FeatureArrays.of_equals(np.tile(np.arange(30), (300, 1)), rows))
    monkeypatch.setattr(comparison, "MAX_STEPS", 2**14)
    with pytest.raises(TooLarge, match=r"2\^30 contexts needs about .* steps.*contexts="):
        unless.compare_structures(long, long)
    assert unless.compare_structures(long, long, contexts=Dataset.from_codes(domain, rows)).f1 == 1


# --- results and refusals -----------------------------------------------------------------------------------


def test_numbers_say_what_their_names_say():
    truth = make_csi(6, random_state=0)
    star = Graph(truth.domain, truth.edges({"W": 1}))
    result = unless.compare_structures(truth, star)
    # 5 links to the gate in 64 contexts; 10 others in the 32 contexts before it.
    assert (result.tp, result.fp, result.fn, result.tn) == (320, 0, 320, 320)
    assert (result.precision, result.recall, result.f1) == (1, 0.5, pytest.approx(2 / 3))
    assert result.false_positive_rate == 0
    assert result.distance == 320
    assert result.pairs["X1", "X2"] == (0, 0, 32, 32)
    assert repr(result) == (
        "<StructureComparison by graphs: F1 0.667, precision 1.000, recall 0.500, false positive rate 0.000; "
        "0 too many and 320 missed in 64 contexts x 15 pairs>"
    )
    with pytest.raises(AttributeError):
        result.tp = 1


def test_results_can_be_written_as_json():
    truth = make_csi(4, random_state=0)
    result = unless.compare_structures(truth, truth, by="features")
    again = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert again == result.to_dict()
    assert (again["by"], again["f1"], again["n_contexts"]) == ("features", 1.0, 16)
    assert again["pairs"][0] == {"pair": ["W", "X1"], "tp": 16, "fp": 0, "fn": 0, "tn": 0}
    one = Domain((Variable("a", ("0", "1")),))
    assert unless.compare_structures(Graph(one), Graph(one)).to_dict()["f1"] is None


def test_features_leak_into_contexts_that_graphs_keep_apart():
    truth = make_csi(6, random_state=0)
    data = truth.sample(10_000, random_state=0)
    learned = unless.CSGS(order="columns").fit(data).structure_
    by_graphs, by_features = (
        unless.compare_structures(truth, learned, by=by, contexts=data, weighted=False) for by in BY
    )
    assert by_graphs.n_left_out == by_features.n_left_out == 0
    assert by_features.false_positive_rate > 2 * by_graphs.false_positive_rate
    assert by_graphs.f1 > 0.6


def domain_with(**levels):
    return Domain(tuple(Variable(name, tuple(said)) for name, said in levels.items()))


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"by": "pairs"}, SettingError, "by='pairs'"),
        ({"b": Graph(domain_with(a="01"))}, SettingError, "variable 'b'"),
        ({"b": Graph(domain_with(a="01", b="01", c="01"))}, SettingError, "variable 'c'"),
        ({"b": Graph(domain_with(a="01", b="02"))}, SettingError, "levels of 'b'"),
        ({"b": "graph"}, SettingError, "str is no structure"),
        ({"b": unless.CSGS()}, SettingError, "structure_"),
        ({"weighted": True}, SettingError, "contexts="),
        ({"contexts": {"a": 0, "b": 1}}, SettingError, "list of contexts"),
        ({"contexts": 3}, SettingError, "list of contexts"),
        ({"contexts": [{"a": 0}]}, SettingError, "no value to 'b'"),
        ({"contexts": [{"a": 0, "b": 7}]}, UnknownLevel, "'7'"),
        (
            {"contexts": Dataset.from_codes(domain_with(a="01"), [[0]])},
            SettingError,
            "Only one of the two tables",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused_in_one_sentence(settings, error, message):
    graph = Graph(domain_with(a="01", b="01"))
    with pytest.raises(error, match=message):
        unless.compare_structures(graph, **{"b": graph, **settings})
