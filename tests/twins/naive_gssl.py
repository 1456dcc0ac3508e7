"""The generation of features, literally: sets of conditions, whole numbers, one list as the set."""

from collections import Counter
from itertools import combinations

LARGEST = 2**64 - 1


class NaiveGenerator:
    """xoshiro256++ and unbiased numbers below a bound, on whole numbers without a limit."""

    def __init__(self, words):
        self.words = [int(word) for word in words]

    def bits(self):
        a, b, c, d = self.words
        result = (rotated((a + d) & LARGEST, 23) + a) & LARGEST
        c ^= a
        d ^= b
        self.words = [a ^ d, b ^ c, c ^ ((b << 17) & LARGEST), rotated(d, 45)]
        return result

    def below(self, bound):
        while True:
            whole, rest = divmod((self.bits() >> 32) * bound, 2**32)
            if rest >= 2**32 % bound:
                return whole


def rotated(word, n_bits):
    return ((word << n_bits) | (word >> (64 - n_bits))) & LARGEST


def naive_gssl(rows, words, n_draws):
    """Return the generated features in the order they came first, and how often each was generated."""
    rows = [tuple(map(int, row)) for row in rows]
    varied = [v for v in range(len(rows[0])) if len({row[v] for row in rows}) > 1]
    everything = [frozenset((v, row[v]) for v in varied) for row in rows]
    counts = Counter()
    generator = NaiveGenerator(words)
    for _ in range(n_draws):
        picked = sorted(everything[generator.below(len(everything))])
        if len(picked) < 2:
            continue
        n_dropped = 1 + generator.below(len(picked) - 1)
        n_kept = len(picked) - n_dropped
        n_drawn = min(n_kept, n_dropped)
        for place in range(n_drawn):
            other = place + generator.below(len(picked) - place)
            picked[place], picked[other] = picked[other], picked[place]
        feature = frozenset(picked[:n_kept] if n_drawn == n_kept else picked[n_drawn:])
        if feature not in counts:
            everything.append(feature)
        counts[feature] += 1
    return everything[len(rows) :], counts


def naive_links_given_rest(features, rows):
    """Tell, for each row and pair, whether a feature has both and its other conditions hold in the row."""
    answers = []
    for row in rows:
        linked = set()
        for feature in features:
            for a, b in combinations([variable for variable, _, _ in feature], 2):
                others = [(variable, level) for variable, level, _ in feature if variable not in (a, b)]
                if all(row[variable] == level for variable, level in others):
                    linked.add((a, b))
        answers.append([pair in linked for pair in combinations(range(len(row)), 2)])
    return answers
