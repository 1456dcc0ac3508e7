"""Run PC in all contexts at once, round by round: contexts that ask the same question ask it together.

Round k takes the pairs (a, b) one after the other and walks the sets W of k neighbours of a
(`unless.kernels.pc_walk`). A question is asked once for all the contexts that stand at a leaf; if the
answer is "independent", they lose the link. Variables are numbered in the order the learner visits them.

The walk keeps its state in arrays of the caller's, so that a call may stop between two questions (to let
the caller widen the memo, show progress or be interrupted) and be taken up again.
"""

import numpy as np

from unless.kernels.answers import INDEPENDENT, UNDECIDED, borrowed_rules, decide
from unless.kernels.bitsets import has_bit
from unless.kernels.compiling import borrowed, compiled, inlined, trailing_zeros
from unless.kernels.memo import Keys, keep, known_answer
from unless.kernels.pc_walk import (
    DEPTH,
    NODE,
    OTHER,
    SOUND,
    borrowed_crowd,
    borrowed_walk,
    enter,
    gather_contexts,
    gather_neighbours,
    links_of,
    move,
)
from unless.kernels.slices import (
    borrowed_crossing,
    borrowed_slices,
    borrowed_table,
    count,
    cross,
    narrow,
    take_all,
)

_ZERO, _ONE = np.uint64(0), np.uint64(1)
# What a step costs besides the words and rows it reads, in units of about a nanosecond.
_STEP_COST = 30


@inlined
def _ask(k, node, other, table, rules, keys, memo, slices, crossing, walk):
    """Answer the question of a leaf and tell whether it is new."""
    first = walk.names[k, 0] ^ keys.asked[node, 0] ^ keys.asked[other, 0]
    second = walk.names[k, 1] ^ keys.asked[node, 1] ^ keys.asked[other, 1]
    answer = known_answer(memo, first, second)
    if answer != 0:
        return answer, 0
    for depth in range(walk.place[SOUND], k):
        narrow(depth, depth + 1, walk.path[depth + 1, 0], walk.path[depth + 1, 1], table, slices)
    walk.place[SOUND] = k
    n_a = table.offsets[node + 1] - table.offsets[node]
    n_b = table.offsets[other + 1] - table.offsets[other]
    total = cross(k, node, n_a, table, slices, crossing)
    count(k, other, n_a, n_b, table, slices, crossing)
    answer = decide(crossing, n_a, n_b, total, rules, node > other)
    # Another thread may have been quicker.
    return answer, 1 if keep(memo, first, second, answer) >= 0 else 0


@inlined
def _remove(k, node, other, crowd, walk):
    """Take the link of a pair from the contexts of a leaf."""
    links, near = links_of(node, other, crowd), crowd.near
    begin, end = walk.bounds[k, 0], walk.bounds[k, 1]
    gone = ~(_ONE << np.uint64(other & 63))
    if begin >= 0:
        for i in range(begin, end):
            context = walk.listed[k, i]
            near[context, other >> 6] &= gone
            links[context >> 6] &= ~(_ONE << np.uint64(context & 63))
        return
    for word in range(links.shape[0]):
        rest = walk.wide[k, word]
        links[word] &= ~rest
        while rest != _ZERO:
            context = (word << 6) + np.int64(trailing_zeros(rest))
            rest &= rest - _ONE
            near[context, other >> 6] &= gone


@inlined
def _effort(depth, slices, walk):
    """Estimate what a step at a depth costs: the contexts there, and the slice behind a question."""
    n_contexts = walk.bounds[depth, 1] - walk.bounds[depth, 0]
    if walk.bounds[depth, 0] < 0:
        n_contexts = walk.wide.shape[1]
    n_rows = slices.sizes[walk.place[SOUND]]
    return _STEP_COST + 2 * n_contexts + (2 * n_rows if n_rows >= 0 else 4 * slices.wide.shape[1])


@compiled
def begin_round(table, slices, walk):
    """Put the walk before the first pair."""
    take_all(0, table, slices)
    walk.names[0, :] = _ZERO
    walk.place[NODE], walk.place[OTHER], walk.place[DEPTH], walk.place[SOUND] = -1, -1, -1, 0


@compiled
def run_round(k, crowd, table, rules, keys, memo, slices, crossing, walk, patience, effort):
    """Ask about every linked pair given k neighbours, in every context, and remove what is independent.

    Stops after `patience` new answers or so much `effort`; returns the node it stopped at (the number of
    variables when done), the number of questions asked and of answers new to the memo, which must have
    room for `patience` of them.
    """
    crowd, walk, memo = borrowed_crowd(crowd), borrowed_walk(walk), borrowed(memo)
    table, slices, crossing = borrowed_table(table), borrowed_slices(slices), borrowed_crossing(crossing)
    rules = borrowed_rules(rules)
    keys = Keys(borrowed(keys.conditions), borrowed(keys.asked))
    n_variables, n_contexts = crowd.codes.shape
    node, other, depth = walk.place[NODE], walk.place[OTHER], walk.place[DEPTH]
    n_asked, n_new, spent = 0, 0, 0
    while node < n_variables and n_new < patience and spent < effort:
        if depth < 0:
            other += 1
            if node < 0 or other == n_variables:
                node, other = node + 1, -1
                if node < n_variables:
                    gather_neighbours(node, k, crowd)
                    spent += n_contexts * (n_variables + 1)
                continue
            spent += crowd.able.shape[0]
            if other == node or has_bit(rules.required, node, other):
                continue
            if gather_contexts(node, other, crowd, walk) == 0:
                continue
            depth = 0
            walk.place[SOUND] = 0
            if k > 0:
                enter(0, node, other, crowd, walk)
        if depth < k:
            depth = move(depth, k, node, other, crowd, keys, walk)
            spent += _effort(max(depth, 0), slices, walk)
            continue
        answer, new = _ask(k, node, other, table, rules, keys, memo, slices, crossing, walk)
        n_asked += walk.bounds[k, 1] - max(walk.bounds[k, 0], 0)
        n_new += new
        if answer == INDEPENDENT or (answer == UNDECIDED and not rules.keep_undecided):
            _remove(k, node, other, crowd, walk)
        spent += _effort(k, slices, walk)
        depth -= 1
    walk.place[NODE], walk.place[OTHER], walk.place[DEPTH] = node, other, depth
    return node, n_asked, n_new


@compiled
def pack_links(links, columns, rows, packed):
    """Write links as one bit a pair, in the order of itertools.combinations over the columns.

    `columns` gives each visited variable's column, `rows` the row of `packed` of each context.
    """
    n_variables = columns.shape[0]
    pair = 0
    for first in range(n_variables):
        for second in range(first + 1, n_variables):
            low, high = min(columns[first], columns[second]), max(columns[first], columns[second])
            target = low * (2 * n_variables - low - 1) // 2 + high - low - 1
            bit = np.uint8(1 << (target & 7))
            for word in range(links.shape[1]):
                rest = links[pair, word]
                while rest != _ZERO:
                    context = (word << 6) + np.int64(trailing_zeros(rest))
                    rest &= rest - _ONE
                    packed[rows[context], target >> 3] |= bit
            pair += 1
