"""CSMPL against a search that scores every neighbour of a labelled graph in full."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import unless
from strategies import KINDS, datasets
from twins.naive_labels import naive_csmpl
from unless.errors import SettingError, TooLarge
from unless.learners import csmpl
from unless.learners.csmpl import CSMPL, LabelSearch, TableScores

# The logarithms of factorials of thousands of millions have no digits left for a twin to agree with.
MODERATE = tuple(kind for kind in KINDS if kind != "huge counts")


def as_twin(data, links):
    """Say labels as the twin does: the levels of gates at which a link is absent."""
    sizes = data.domain.n_levels
    graph = {}
    for pair, label in links.items():
        absent = [(c, level) for c, there in label for level in range(sizes[c]) if level not in there]
        graph[frozenset(pair)] = frozenset(absent)
    return graph


@st.composite
def runs(draw):
    """Draw a table with columns in the order of names, and limits of the search."""
    data = draw(datasets(kinds=MODERATE, max_variables=5, max_levels=4, max_rows=60))
    data = data.select(sorted(data.names))
    pairs = st.tuples(st.integers(0, data.n_variables - 1), st.integers(0, data.n_variables - 1))
    required = draw(st.lists(pairs.filter(lambda pair: pair[0] < pair[1]), max_size=2, unique=True))
    forbidden = draw(st.lists(pairs.filter(lambda pair: pair[0] < pair[1]), max_size=2, unique=True))
    return data, {
        "required": required,
        "forbidden": [pair for pair in forbidden if pair not in required],
        "max_blanket": draw(st.sampled_from([None, None, 0, 1, 2])),
    }


@settings(max_examples=60)
@given(runs())
def test_graph_and_scores_are_those_of_full_scoring(run):
    data, limits = run
    graph, path = naive_csmpl(data.rows, data.counts, data.domain.n_levels.tolist(), **limits)
    must, never = (np.zeros((data.n_variables,) * 2, dtype=bool) for _ in range(2))
    for matrix, kind in ((must, "required"), (never, "forbidden")):
        for a, b in limits[kind]:
            matrix[a, b] = matrix[b, a] = True
    search = LabelSearch(TableScores(data), must, never, limits["max_blanket"])
    scores = [search.score()]
    while search.step():
        scores.append(search.score())
    assert scores == pytest.approx(path, rel=1e-9, abs=1e-9)
    assert as_twin(data, search.links) == graph
    named = {f"{kind}_edges": [(data.names[a], data.names[b]) for a, b in limits[kind]] or None
             for kind in ("required", "forbidden")}  # fmt: skip
    est = CSMPL(max_blanket=limits["max_blanket"], **named).fit(data)
    assert est.score_ == scores[-1]
    assert {frozenset(map(data.domain.index, link.pair)) for link in est.structure_} == set(graph)


def test_a_gate_is_found_with_the_levels_at_which_the_link_is_absent():
    rng = np.random.default_rng(0)
    w, a = rng.integers(0, 3, 6000), rng.integers(0, 2, 6000)
    a = np.where(rng.random(6000) < 0.6, a, w > 0)
    b = np.where((w == 1) | (rng.random(6000) < 0.3), rng.random(6000) < 0.3 + 0.3 * (w == 2), a)
    domain = unless.Domain(
        tuple(unless.Variable(name, ("0", "1", "2")[:k]) for name, k in (("w", 3), ("a", 2), ("b", 2)))
    )
    est = CSMPL().fit(unless.Dataset.from_codes(domain, np.stack([w, a, b], axis=1)))
    assert "a - b where w in {0, 2}" in [str(link) for link in est.structure_]
    assert est.structure_.given({"w": "1"}).has_edge("a", "b") is False


def test_blankets_with_very_many_lines_are_no_obstacle():
    rng = np.random.default_rng(0)
    domain = unless.Domain(tuple(unless.Variable(f"v{k:02}", tuple(map(str, range(40)))) for k in range(15)))
    data = unless.Dataset.from_codes(domain, rng.integers(0, 40, (60, 15)))
    required = [("v00", f"v{k:02}") for k in range(1, 15)]
    est = CSMPL(required_edges=required, max_blanket=0).fit(data)
    assert np.isfinite(est.score_)
    assert len(est.structure_) == 14


def test_a_file_without_a_score_is_refused():
    est = CSMPL().fit(unless.datasets.load_ucb_admissions())
    with pytest.raises(SettingError, match="score"):
        est._from_record(est.structure_, {"score": "high"})


def test_scores_that_do_not_fit_are_refused_on_the_way(monkeypatch):
    data = unless.datasets.make_csi(6, random_state=0).sample(500, random_state=0)
    # The scores of all pairs fit, those of all moves do not.
    monkeypatch.setattr(csmpl, "_BYTES_OF_A_SCORE", 64 * 2**20 // 80)
    with pytest.raises(TooLarge, match=r"After [0-9]+ scores, what is kept of them needs more than"):
        CSMPL(max_memory="64 MB").fit(data)
