"""The search of GGS, literally: gate trees, the cells where two of them meet, and the account of a pair."""

from functools import cache
from itertools import combinations
from math import comb, inf, log

import numpy as np
from scipy.special import chdtrc, chdtri

import twins.naive_ggs as naive


def p_of(test):
    value, df = test
    return float(chdtrc(df, value)) if df else 1.0


class NaiveSearch:
    """Grows the blankets and the gate tree of one variable from rows, each as often as it was counted.

    What is said of a part first stands: a part reached by its conditions in another order is not asked again.
    """

    def __init__(self, rows, target, allowed, gates, alpha, max_gate, *, few_gates=8, max_near=20):
        self.rows, self.target, self.alpha, self.max_gate = rows, target, alpha, max_gate
        self.near, self.gates = sorted(allowed), sorted(gates)
        self.few_gates, self.max_near = few_gates, max_near
        self.references = [naive.reference_level(rows, variable) for variable in range(rows.shape[1])]
        self.price = chdtri(1, alpha) / 2
        self.blankets, self.screens, self.looks = {}, {}, {}
        # The same regression is asked for again and again; keeping it saves time and nothing else.
        self.regress = cache(self.regressed)

    def part(self, conditions):
        """Keep the rows that meet all conditions, one after the other."""
        kept = self.rows
        for variable, levels in conditions:
            kept = kept[[code in levels for code in kept[:, variable].tolist()]]
        return kept

    def levels(self, conditions, variable):
        return sorted({int(row[variable]) for row in self.part(conditions)})

    def regressed(self, conditions, blanket):
        return naive.regress(self.part(conditions), self.target, sorted(blanket), self.references)

    def score(self, conditions, blanket, variable):
        rows = self.part(conditions)
        # Levels that the part does not show have a column of zeros, which says nothing.
        levels = [level for level in np.unique(self.rows[:, variable]) if level != self.references[variable]]
        extra = np.column_stack([rows[:, variable] == level for level in levels]).astype(float)
        return naive.score_of(self.regress(conditions, frozenset(blanket)), rows[:, self.target], extra)

    def drop(self, conditions, blanket, variable):
        full = self.regress(conditions, frozenset(blanket))
        fewer = self.regress(conditions, frozenset(blanket) - {variable})
        return naive.ratio(full, fewer, variable)

    def blanket(self, conditions, start):
        if conditions not in self.blankets:
            self.blankets[conditions] = self.shrink(conditions, self.grow(conditions, set(start)))
        return self.blankets[conditions]

    def grow(self, conditions, blanket):
        least = dict.fromkeys(self.near, 1.0)
        while True:
            tests = {b: self.score(conditions, blanket, b) for b in self.near if b not in blanket}
            for b, test in tests.items():
                least[b] = min(least[b], p_of(test))
            strongest = min(tests, key=lambda b: (p_of(tests[b]), -tests[b][0], b), default=None)
            if strongest is None or p_of(tests[strongest]) >= self.alpha:
                break
            blanket = blanket | {strongest}
        if not conditions:
            ranked = sorted(self.near, key=lambda b: (b not in blanket, least[b], b))
            self.near = sorted(ranked[: max(self.max_near, len(blanket))])
        return blanket

    def shrink(self, conditions, blanket):
        while blanket:
            found = self.regress(conditions, frozenset(blanket))
            doubted = [b for b in blanket if p_of(naive.size(naive.effect(found, b))) >= self.alpha / 10]
            tests = [(p_of(self.drop(conditions, blanket, b)), b) for b in doubted]
            p, weakest = max(tests, default=(0.0, None))
            if p < self.alpha:
                break
            blanket = blanket - {weakest}
        return tuple(sorted(blanket))

    def tree(self, shares):
        """Return (conditions, blanket, candidates, gate, union, children), and the same below."""
        return self.split((), self.blanket((), ()), shares, 0)

    def split(self, conditions, blanket, shares, depth):
        leaf = conditions, blanket, (), None, (), ()
        if depth == self.max_gate or not blanket:
            return leaf
        candidates = self.candidates(conditions, blanket, shares)
        leaf = conditions, blanket, candidates, None, (), ()
        best = max(
            candidates, key=lambda one: (round(one[1] + log(shares[one[0]]), 5), -one[0]), default=None
        )
        if best is None:
            return leaf
        gate, gain, p, union = best
        if gain + log(shares[gate]) <= log(shares[-1]) or p >= self.alpha * shares[gate] ** 2:
            return leaf
        children = []
        for group in self.groups(conditions, gate, union):
            below = narrowed(conditions, gate, group)
            inside = self.blanket(below, [b for b in blanket if b != gate])
            children.append(self.split(below, inside, shares, depth + 1))
        if len(children) == 1:
            return leaf
        return conditions, blanket, candidates, gate, union, tuple(children)

    def candidates(self, conditions, blanket, shares):
        if conditions not in self.screens:
            self.screens[conditions] = self.screened(conditions, blanket)
        often = [gate for gate in self.gates if shares[gate] > 1 / len(shares)]
        often = sorted(often, key=lambda gate: (-shares[gate], gate))[:3]
        found = []
        for gate in self.gates:
            if gate in self.screens[conditions] or gate in often:
                if (conditions, gate) not in self.looks:
                    self.looks[conditions, gate] = self.look(conditions, blanket, gate)
                found.append(self.looks[conditions, gate])
        return tuple(one for one in found if one is not None)

    def screened(self, conditions, blanket):
        if len(self.gates) <= self.few_gates:
            return self.gates
        tests = {gate: self.gate_score(conditions, blanket, gate) for gate in self.gates if gate in self.near}
        likely = [gate for gate, test in tests.items() if p_of(test) < self.alpha]
        return sorted(likely, key=lambda gate: (p_of(tests[gate]), -tests[gate][0], gate))[:3]

    def gate_score(self, conditions, blanket, gate):
        levels = [level for level in np.unique(self.rows[:, gate]) if level != self.references[gate]]
        return naive.gate_score(
            self.part(conditions), self.target, sorted(blanket), gate, levels, self.references
        )

    def look(self, conditions, blanket, gate):
        parts = [narrowed(conditions, gate, (level,)) for level in self.levels(conditions, gate)]
        if len(parts) < 2:
            return None
        start = tuple(b for b in blanket if b != gate)
        thorough = len(self.gates) <= self.few_gates
        own = [self.blanket(part, start) if thorough else start for part in parts]
        gain = sum(self.worth(self.regress(part, frozenset(b))) for part, b in zip(parts, own, strict=True))
        gain -= self.worth(self.regress(conditions, frozenset(blanket)))
        union = tuple(sorted({*start, *(b for one in own for b in one)}))
        if not union:
            return None
        apart = [self.regress(part, frozenset(union)) for part in parts]
        together = self.regress(conditions, frozenset({*union, gate}))
        df = sum(one.weights.size for one in apart) - together.weights.size
        if df <= 0:
            return None
        ratio = 2 * (sum(one.log_likelihood for one in apart) - together.log_likelihood)
        tests = [naive.difference([naive.effect(one, variable) for one in apart]) for variable in union]
        alone = len(union) * min(p_of(test) for test in tests)
        return gate, gain, min(1.0, 2 * min(p_of((max(0.0, ratio), df)), alone)), union

    def worth(self, found):
        """Pay for each weight; where those of a variable are not worth it, give the variable back."""
        worth = found.log_likelihood - self.price * found.weights.size
        for variable in {owner[0] for owner in found.owners if owner is not None}:
            value, df = naive.size(naive.effect(found, variable))
            worth += max(0.0, self.price * df - value / 2)
        return worth

    def groups(self, conditions, gate, union):
        """Join, as long as it pays, the two groups of levels that it pays most to join."""
        groups = [(level,) for level in self.levels(conditions, gate)]
        if len(groups) == 2:
            return groups

        def worth(group):
            blanket = union if len(group) == 1 else (*union, gate)
            found = self.regress(narrowed(conditions, gate, group), frozenset(blanket))
            return found.log_likelihood - self.price * found.weights.size

        while len(groups) > 1:
            best, chosen = 0.0, None
            for one, other in combinations(groups, 2):
                gain = worth(tuple(sorted((*one, *other)))) - worth(one) - worth(other)
                if gain > best:
                    best, chosen = gain, (one, other)
            if chosen is None:
                break
            groups = [group for group in groups if group not in chosen] + [tuple(sorted(sum(chosen, ())))]
        return sorted(groups)


def narrowed(conditions, variable, levels):
    """Add a condition, in place of one on the same variable."""
    return tuple(sorted({**dict(conditions), variable: tuple(levels)}.items()))


def shares_of(trees):
    """Estimate by EM how often each variable is a gate at another; the last is how often none is."""
    n = len(trees)
    shares = [1 / (n + 1)] * (n + 1)
    for _ in range(50):
        totals = [0.5 / n] * (n + 1)
        for target, (_, _, candidates, *_) in enumerate(trees):
            gains = {gate: gain for gate, gain, _, _ in candidates} | {n: 0.0}
            likely = {gate: gain + log(shares[gate]) for gate, gain in gains.items()}
            most = max(likely.values())
            votes = {gate: np.exp(value - most) for gate, value in likely.items()}
            for gate, vote in votes.items():
                totals[gate] += vote / sum(votes.values()) * (1 - shares[target])
        shares = [total / sum(totals) for total in totals]
    return shares


def gates_in(tree):
    """Return all gates of a tree."""
    _, _, _, gate, _, children = tree
    return {gate, *(below for child in children for below in gates_in(child))} - {None}


def ranks_of(trees):
    """Count at how many each is a gate, of those that are gates at no more than it is."""
    used = [gates_in(tree) for tree in trees]
    votes = [sum(gate in one for one in used) for gate in range(len(trees))]
    return [
        sum(gate in used[other] and votes[other] <= votes[gate] for other in range(len(trees)))
        for gate in range(len(trees))
    ]


def stops(tree, other):
    """Return the leaves, and nodes whose gate is the other variable instead of what is below them."""
    _, _, _, gate, _, children = tree
    if gate is None or gate == other:
        return [tree]
    return [stop for child in children for stop in stops(child, other)]


def probabilities_of(tree, gate):
    """List the p of a gate wherever it was chosen."""
    own = [candidate[2] for candidate in tree[2] if candidate[0] == gate == tree[3]]
    return own + [p for child in tree[5] for p in probabilities_of(child, gate)]


class NaiveLinker:
    """Says where two variables are linked."""

    def __init__(self, searches, trees, n_gates, max_cells=8):
        self.searches, self.trees, self.n_gates, self.max_cells = searches, trees, n_gates, max_cells
        self.rows, self.alpha = searches[0].rows, searches[0].alpha
        self.ranks = ranks_of(trees)
        self.n_tried = 0

    def pair(self, a, b):
        """Return what is linked, what is not, what differs.

        Each is (conditions, statistic, rows, p, gate, p as claimed).
        """
        mine = stops(self.trees[a], b) if self.ranks[a] <= self.ranks[b] else []
        yours = stops(self.trees[b], a) if self.ranks[b] <= self.ranks[a] else []
        spoken = [self.switched(a, stop) for stop in mine if stop[3] == b]
        spoken += [self.switched(b, stop) for stop in yours if stop[3] == a]
        apart = []
        for one in sorted(spoken, key=lambda one: (len(one[0]), one[3], one[0])):
            if not any(self.overlap(one[0], other[0]) for other in apart):
                apart.append(one)
        if any(not one[0] for one in apart):
            return apart, [], []
        here = [stop for stop in mine if stop[3] is None]
        there = [stop for stop in yours if stop[3] is None]
        if not any(b in stop[1] for stop in here) and not any(a in stop[1] for stop in there):
            return apart, [], []
        cells = [
            cell
            for cell in self.cells(a, b, here, there)
            if not any(self.overlap(cell[0], one[0]) for one in apart)
        ]
        self.n_tried = 0
        if apart:
            _, linked, unlinked, differs = self.each(cells)
        else:
            _, linked, unlinked, differs = self.best(cells, ())
        linked = [self.linked(*one[:3], self.n_tried) for one in linked]
        differs = [
            (*one[:3], min(1.0, p_of(one[1]) * self.n_gates ** max(1, len(one[0]))), one[4])
            for one in differs
        ]
        return apart + linked, unlinked, [(*one, one[3]) for one in differs]

    def linked(self, conditions, test, n_rows, n_tried, gates=()):
        """Correct for the accounts tried; and for the gates that were possible, unless they are sure."""
        p, gates = min(1.0, n_tried * p_of(test)), {*gates, *dict(conditions)}
        n_looked_at, doubt = len(self.trees) * (self.n_gates + 1), 0.0
        for gate in gates:
            plainest = min(p for tree in self.trees for p in probabilities_of(tree, gate))
            doubt = max(doubt, min(1.0, n_looked_at * plainest))
        claimed = max(p, min(p * self.n_gates ** len(gates), doubt))
        return conditions, test, n_rows, p, None, claimed

    def switched(self, target, stop):
        search, (conditions, _, _, _, union, children) = self.searches[target], stop
        apart = [search.regress(child[0], frozenset(union)) for child in children]
        without = search.regress(conditions, frozenset(union))
        ratio = 2 * (sum(one.log_likelihood for one in apart) - without.log_likelihood)
        test = max(0.0, ratio), sum(one.weights.size for one in apart) - without.weights.size
        n_tried = 2 * comb(len(self.trees) - 2, len(union))
        return self.linked(conditions, test, len(search.part(conditions)), n_tried, {stop[3]})

    @staticmethod
    def overlap(one, other):
        return all(set(levels) & set(dict(other).get(variable, levels)) for variable, levels in one)

    def cells(self, a, b, here, there):
        """Let the leaves of both ends meet, and both say what the weights are: (conditions, told, rows)."""
        found, meetings = [], self.meetings(here, there)
        if len(meetings) > self.max_cells:
            here, there = (here, []) if len(here) < len(there) else ([], there)
            meetings = self.meetings(here, there)
        for part, one, other in meetings:
            said = [] if one is None else [self.effect(a, part, one[1], b)]
            if other is not None:
                turned = self.effect(b, part, other[1], a)
                said.append(turned._replace(cells=[(y, x) for x, y in turned.cells]))
            found.append((part, mean(said), len(self.searches[a].part(part))))
        return found

    def meetings(self, here, there):
        if not here or not there:
            return [(leaf[0], leaf, None) for leaf in here] + [(leaf[0], None, leaf) for leaf in there]
        found = []
        for one in here:
            for other in there:
                both = dict(one[0])
                for variable, levels in other[0]:
                    both[variable] = tuple(sorted(set(levels) & set(both.get(variable, levels))))
                conditions = tuple(sorted(both.items()))
                if len(self.searches[0].part(conditions)):
                    found.append((conditions, one, other))
        return found

    def effect(self, target, conditions, blanket, variable):
        """Scale the covariance so that the weights are no surer than likelihood ratio and score say."""
        search, blanket = self.searches[target], frozenset({*blanket, variable})
        told = naive.effect(search.regress(conditions, blanket), variable)
        wald = naive.size(told)
        if not told.cells or p_of(wald) < 1e-8 or (p_of(wald) > 0.2 and np.abs(told.weights).max() < 3):
            return told
        score = search.score(conditions, blanket - {variable}, variable)
        ratio = min(search.drop(conditions, blanket, variable)[0], score[0])
        if min(ratio, wald[0]) <= 1e-7:
            return told
        return told._replace(covariance=told.covariance * np.clip(wald[0] / ratio, 0.1, 10))

    def each(self, cells):
        choices = [self.best([cell], cell[0]) for cell in cells]
        return (
            0.0,
            [one for choice in choices for one in choice[1]],
            [one for choice in choices for one in choice[2]],
            [],
        )

    def best(self, cells, path):
        """Return (worth, linked, unlinked, differs) of no link, one link, or a split, whichever is best."""
        self.n_tried += 1
        test, n_rows = naive.common([cell[1] for cell in cells]), sum(cell[2] for cell in cells)
        found = path, test, n_rows, p_of(test), None, p_of(test)
        choice = 0.0, [], [found], []
        linked = test[0] - chdtri(test[1], self.alpha) if test[1] else -inf
        if linked > choice[0]:
            choice = linked, [found], [], []
        for gate in sorted({variable for cell in cells for variable, _ in cell[0]}):
            sides = {dict(cell[0]).get(gate) for cell in cells}
            if None not in sides and len(sides) > 1 and len(set(sum(sides, ()))) == len(sum(sides, ())):
                split = self.split(cells, path, gate, sorted(sides))
                choice = split if split[0] > choice[0] else choice
        return choice

    def split(self, cells, path, gate, sides):
        several = [[cell for cell in cells if dict(cell[0])[gate] == levels] for levels in sides]
        below = [
            self.best(side, narrowed(path, gate, levels)) for side, levels in zip(several, sides, strict=True)
        ]
        value, df = naive.difference([cell[1] for cell in cells])
        for side in several:
            inside = naive.difference([cell[1] for cell in side])
            value, df = value - inside[0], df - inside[1]
        test = (max(0.0, value), df) if df > 0 else (0.0, 0)
        told = path, test, sum(cell[2] for cell in cells), p_of(test), gate
        return (
            sum(choice[0] for choice in below),
            [one for choice in below for one in choice[1]],
            [one for choice in below for one in choice[2]],
            [told, *(one for choice in below for one in choice[3])],
        )


def mean(said):
    """Join what the two ends of a pair say of its weights, as far as both say something."""
    one, other = said[0], said[-1]
    shared = [cell for cell in one.cells if cell in other.cells]
    here, there = ([told.cells.index(cell) for cell in shared] for told in (one, other))
    covariance = (one.covariance[np.ix_(here, here)] + other.covariance[np.ix_(there, there)]) / 2
    return naive.Told(shared, (one.weights[here] + other.weights[there]) / 2, covariance)
