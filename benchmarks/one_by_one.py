"""The kernels of the cohorts, asked about one context after the other: what sharing is measured against."""

import numba
import numpy as np

from unless.counting.slices import PackedTable
from unless.data.dataset import Dataset
from unless.kernels.grow_shrink import begin, grow_shrink, pack_pairs
from unless.learners.grow_shrink.cohorts import ContextGraphs, Strategy, make_search
from unless.learners.memo import make_log, question_keys
from unless.structures.structure import packed_width


def _loop(  # noqa: PLR0913, PLR0917 (a kernel)
    graphs, table, rules, keys, memo, log, slices, crosstab, search, forget
):
    """Learn one context after the other, in compiled code, so that only the sharing differs."""
    n, m = table.codes.shape
    alone = np.empty((n, 1, graphs.shape[2]), dtype=np.uint64)
    nodes = np.arange(n)
    n_asked = 0
    for context in range(m):
        if forget:
            memo[:, :] = np.uint64(0)
        search.contexts[0] = context
        alone[:, 0, :] = rules.required
        search.queue[0] = search.done[0] = top = 0
        while top >= 0:
            top, asked, _ = grow_shrink(
                nodes,
                n,
                True,
                alone,
                table,
                rules,
                keys,
                memo,
                log,
                slices,
                crosstab,
                search,
                top,
                1 << 15,
            )
            n_asked += asked
        graphs[:, context, :] = alone[:, 0, :]
    return n_asked


_compiled_loop = numba.njit(_loop, nogil=True, error_model="numpy")


def learn_one_by_one(data: Dataset, order: list[int], strategy: Strategy, n_known: int = 0) -> ContextGraphs:
    """Learn every canonical graph by itself; with `n_known`, keep so many answers from context to context."""
    packed = PackedTable.of(data, order)
    table, rules = packed.table, strategy.rules
    n, m = table.codes.shape
    limit = packed.list_limit()
    graphs = np.zeros((n, m, rules.required.shape[1]), dtype=np.uint64)
    # A context asks at most two questions for each pair of node and other; a memo should be half empty.
    places = 1 << (2 * max(n_known, 2 * n * n)).bit_length()
    memo = np.zeros((places, 2), dtype=np.uint64)
    search = make_search(packed, [np.zeros(1, dtype=np.int32)])
    slices = packed.slices(2 * n + 4, limit)
    begin(table, slices, search)
    n_asked = _compiled_loop(
        graphs,
        table,
        rules,
        question_keys(int(table.offsets[-1]), n),
        memo,
        make_log((1 << 15) + 2 * n),
        slices,
        packed.crosstab_buffers(limit),
        search,
        n_known == 0,
    )
    edges = np.zeros((m, packed_width(n)), dtype=np.uint8)
    by_count = np.zeros_like(edges)
    pack_pairs(graphs, np.array(packed.order), True, False, by_count, 0, m)
    edges[packed.row_order] = by_count
    return ContextGraphs(edges, int(n_asked), int(np.count_nonzero(memo[:, 1] & np.uint64(3))))
