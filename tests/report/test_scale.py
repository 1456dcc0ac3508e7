"""A large page stays small and quick."""

import msgspec
import numpy as np
import pytest

import unless
from unless.report.html import render
from unless.report.writing import gather, pack_rows
from unless.structures.structure import n_pairs, pack

MOST_BYTES = 6_000_000


@pytest.fixture(scope="module")
def wide():
    """Make 60 variables, 10,000 contexts of a graph each, and chains of links with gates."""
    rng, n, n_rows = np.random.default_rng(0), 60, 10_000
    domain = unless.Domain(
        tuple(
            unless.Variable(f"v{k:02d}", ("low", "mid", "high") if k % 3 == 0 else ("no", "yes"))
            for k in range(n)
        )
    )
    rows = np.stack([rng.integers(0, size, n_rows) for size in domain.n_levels], axis=1)
    for k in range(1, n):
        copied = rng.random(n_rows) < 0.6
        rows[copied, k] = np.minimum(rows[copied, k - 1], domain.n_levels[k] - 1)
    data = unless.Dataset.from_codes(domain, rows)
    first, second = np.triu_indices(n, 1)
    links = rng.random((data.n_distinct, n_pairs(n))) < 0.05
    links |= (second - first <= 4) & (data.rows[:, first % 7 * 8] == 0)
    return unless.CanonicalModel.from_edges(domain, data.rows, data.counts, pack(links)), data


@pytest.mark.slow
def test_sixty_variables_and_ten_thousand_contexts(wide, visit, tmp_path):
    model, data = wide
    assert len(model) == 10_000
    page = gather(data, unless.explain(model, data))
    assert (len(page.variables), page.contexts.n, len(page.statements)) == (60, 10_000, 1770)
    text = render(page).encode()
    assert len(text) < MOST_BYTES
    (tmp_path / "wide.html").write_bytes(text)
    shown = visit(tmp_path / "wide.html")
    assert milliseconds(shown) < 100


def milliseconds(page):
    """Return the processor time a chip takes, drawing included; the clock also counts what others do."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    spent = [process_time(session)]
    n = page.evaluate("""async () => {
      const chips = [...document.querySelectorAll("#chips input")].filter(one => !one.checked).slice(0, 40);
      for (const chip of chips) {
        chip.checked = true;
        chip.dispatchEvent(new Event("change"));
        await new Promise(done => requestAnimationFrame(() => setTimeout(done, 0)));
      }
      return chips.length;
    }""")
    spent.append(process_time(session))
    return 1000 * (spent[1] - spent[0]) / n


def process_time(session):
    metrics = session.send("Performance.getMetrics")["metrics"]
    return next(one["value"] for one in metrics if one["name"] == "ProcessTime")


def test_contexts_that_all_differ_are_cut_to_what_fits():
    rng = np.random.default_rng(1)
    domain = unless.Domain(tuple(unless.Variable(f"v{k}", tuple(map(str, range(300)))) for k in range(40)))
    data = unless.Dataset.from_codes(domain, rng.integers(0, 300, (60_000, 40)))
    held = pack_rows(data)
    assert held.n < 60_000
    assert len(msgspec.json.encode(held)) < MOST_BYTES - 600_000
    assert "most frequent of 60,000 contexts" in held.note
