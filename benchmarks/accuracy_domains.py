"""Known laws to recover, the test that is told the gate, and what a claim about them is worth."""

from collections.abc import Mapping
from itertools import combinations, product
from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc

import unless

TOLD_ALPHA = 0.02
# GGS was designed while looking at draws 0 to 15: these begin beyond them.
FIRST_DRAW = 100
# The variable and the level that switch the links of the paper's domain.
GATE = ("W", ("0",))


def paper(n_variables: int, n_rows: int, draw: int, **settings):
    """Draw weights and a table of the paper's domain or a relative; return the table, its truth and law."""
    seed = FIRST_DRAW + draw
    law = unless.datasets.make_csi(n_variables, random_state=seed, **settings)
    data = law.sample(n_rows, random_state=1_000 + seed)
    return data, law.truth(data), law


def double_gate(n_variables: int, n_rows: int, draw: int):
    """Return a table whose X are linked only where U = 0 and V = 0, and elsewhere depend on U and V alone."""
    rng, n = np.random.default_rng(FIRST_DRAW + draw), n_variables - 2
    states = np.array(list(product((0, 1), repeat=n)))
    linked = sum(
        rng.standard_normal((2, 2))[states[:, a], states[:, b]] for a, b in combinations(range(n), 2)
    )
    energies = [linked]
    for _ in range(3):
        energies.append(sum(rng.standard_normal(2)[states[:, a]] for a in range(n)))
    probabilities = np.concatenate([np.exp(energy - np.logaddexp.reduce(energy)) / 4 for energy in energies])
    counts = rng.multinomial(n_rows, probabilities / probabilities.sum())
    gates = [(0, 0), (0, 1), (1, 0), (1, 1)]
    rows = np.array([[*state, *gate] for gate in gates for state in states])
    names = [*(f"X{number}" for number in range(1, n + 1)), "U", "V"]
    domain = unless.Domain(tuple(unless.Variable(name, ("0", "1")) for name in names))
    data = unless.Dataset.from_codes(domain, rows[counts > 0], counts[counts > 0])
    both = unless.Region.of(domain, {"U": ["0"], "V": ["0"]})
    links = [
        unless.Link(pair, (unless.Region(),) if {*pair} & {"U", "V"} else (both,))
        for pair in combinations(names, 2)
    ]
    return data, unless.LabelledGraph(domain, links)


RELATIVES = {
    "chain, n = 20": lambda n_rows, draw: paper(20, n_rows, draw, shape="chain")[:2],
    "grid, n = 20": lambda n_rows, draw: paper(20, n_rows, draw, shape="grid")[:2],
    "chain, two gates, n = 20": lambda n_rows, draw: paper(20, n_rows, draw, shape="chain", n_gates=2)[:2],
    "two gates, n = 8": lambda n_rows, draw: paper(8, n_rows, draw, n_gates=2)[:2],
    "three levels, n = 6": lambda n_rows, draw: paper(6, n_rows, draw, n_levels=3)[:2],
    "gate of two variables, n = 7": lambda n_rows, draw: double_gate(7, n_rows, draw),
}


def tested_at_gate(data: unless.Dataset) -> unless.LabelledGraph:
    """Test each pair where W = 0 by the likelihood ratio of pairwise models; W is linked to all."""
    names = [name for name in data.names if name != "W"]
    columns = [data.domain.index(name) for name in names]
    here = data.rows[:, data.domain.index("W")] == 0
    states = np.array(list(product((0, 1), repeat=len(names))))
    place = data.rows[here][:, columns].astype(int) @ (2 ** np.arange(len(names))[::-1])
    counts = np.bincount(place, weights=data.counts[here], minlength=len(states))
    pairs = list(combinations(range(len(names)), 2))
    joint = [states[:, a] * states[:, b] for a, b in pairs]
    full = _log_likelihood([*states.T, *joint], counts)
    region = unless.Region.of(data.domain, {"W": ["0"]})
    links = [unless.Link((name, "W")) for name in names]
    for number, (a, b) in enumerate(pairs):
        fewer = _log_likelihood([*states.T, *joint[:number], *joint[number + 1 :]], counts)
        if chdtrc(1, max(0.0, 2 * (full - fewer))) < TOLD_ALPHA:
            links.append(unless.Link((names[a], names[b]), (region,)))
    return unless.LabelledGraph(data.domain, links)


def _log_likelihood(columns, counts) -> float:
    """Fit a log-linear model over all states by Newton's method."""
    design, weights, total = np.column_stack(columns).astype(float), np.zeros(len(columns)), counts.sum()

    def value(now):
        return counts @ (design @ now) - total * np.logaddexp.reduce(design @ now)

    for _ in range(60):
        probabilities = np.exp(design @ weights - np.logaddexp.reduce(design @ weights))
        mean = design.T @ probabilities
        slope = design.T @ (counts - total * probabilities)
        curve = total * ((design * probabilities[:, None]).T @ design - np.outer(mean, mean))
        step = np.linalg.solve(curve + 1e-6 * np.eye(len(weights)), slope)
        size = 1.0
        while size > 1e-4 and value(weights + size * step) < value(weights) - 1e-9:
            size /= 2
        weights = weights + size * step
        if step @ slope < 1e-9:
            break
    return float(value(weights))


def named_gate(graph: unless.LabelledGraph) -> tuple[str, tuple[str, ...]] | None:
    """Return the variable and levels that most gated links name."""
    votes: dict[tuple[str, tuple[str, ...]], int] = {}
    for link in graph:
        for region in link.regions:
            for condition in region.conditions:
                votes[condition] = votes.get(condition, 0) + 1
    return max(votes, key=lambda one: (votes[one], one)) if votes else None


def independent(n_rows: int, rng):
    """Return a table of six variables that have nothing to do with each other, its links and interactions."""
    sizes = (2, 2, 3, 2, 3, 2)
    columns = [rng.choice(size, size=n_rows, p=rng.dirichlet(np.full(size, 3.0))) for size in sizes]
    variables = (unless.Variable(f"v{k}", tuple(map(str, range(size)))) for k, size in enumerate(sizes))
    return unless.Dataset.from_codes(unless.Domain(tuple(variables)), np.column_stack(columns)), set(), set()


def pairwise(n_rows: int, rng):
    """Return a table of six variables with some links and no gates, its links and interactions."""
    states = np.array(list(product((0, 1), repeat=6)))
    energy, links = states @ rng.normal(0, 0.5, 6), set()
    for a, b in combinations(range(6), 2):
        if rng.random() < 0.4:
            links.add((f"v{a}", f"v{b}"))
            energy = energy + rng.normal(0, 1) * states[:, a] * states[:, b]
    counts = rng.multinomial(n_rows, np.exp(energy - np.logaddexp.reduce(energy)))
    domain = unless.Domain(tuple(unless.Variable(f"v{k}", ("0", "1")) for k in range(6)))
    return unless.Dataset.from_codes(domain, states[counts > 0], counts[counts > 0]), links, set()


class Sampled(NamedTuple):
    """A network to draw tables from: its joint law, its links and its three-way interactions."""

    domain: unless.Domain
    states: np.ndarray
    probabilities: np.ndarray
    links: set
    triples: set

    def __call__(self, n_rows: int, rng):
        """Return a table, the links and the interactions."""
        counts = rng.multinomial(n_rows, self.probabilities)
        seen = counts > 0
        data = unless.Dataset.from_codes(self.domain, self.states[seen], counts[seen])
        return data, self.links, self.triples


def network(path) -> Sampled:
    """Read a network that is small enough to list all its states."""
    model = unless.read_model(path)
    scopes = {feature.scope for feature in model.features}
    links = {tuple(sorted(pair)) for scope in scopes for pair in combinations(scope, 2)}
    triples = {frozenset(triple) for scope in scopes for triple in combinations(scope, 3)}
    probabilities = model.query(list(model.domain.names)).probabilities.astype(np.float64)
    states = np.array(list(np.ndindex(probabilities.shape)))
    return Sampled(model.domain, states, probabilities.ravel() / probabilities.sum(), links, triples)


def false_shares(est: unless.GGS, links: set, triples: set) -> Mapping[str, float]:
    """Return the share of false ones among the claims of each kind; 0 where none is made."""
    shares = {}
    for kind, is_true in (
        ("linked", lambda claim: claim.pair in links),
        ("differs", lambda claim: frozenset((*claim.pair, claim.gate)) in triples),
    ):
        made = [claim for claim in est.claims_ if claim.kind == kind]
        shares[kind] = sum(not is_true(claim) for claim in made) / max(1, len(made))
    return shares


def strengths(law, level: int = 0) -> Mapping[tuple[str, str], float]:
    """Return Cramer's V of each pair of X where W has a level, over the strata of the rest."""
    names = [name for name in law.domain.names if name != "W"]
    table = np.take(law.probabilities, level, axis=law.domain.index("W"))
    table = table / table.sum()
    found = {}
    for a, b in combinations(range(len(names)), 2):
        strata = np.moveaxis(table, (a, b), (-2, -1)).reshape(-1, 2, 2)
        weight = strata.sum(axis=(1, 2))
        expected = strata.sum(2)[:, :, None] * strata.sum(1)[:, None, :] / weight[:, None, None]
        found[names[a], names[b]] = float(np.sqrt(((strata - expected) ** 2 / expected).sum()))
    return found
