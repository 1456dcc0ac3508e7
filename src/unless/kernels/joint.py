"""One variable against others in every stratum of some more: dense tables, and their chi-square statistics.

Tables are counted by bits or by rows. Cells lie as (level of the other, level of a, stratum): strata are
neighbours, so that margins, expectations and terms are loops over strata, which compile into vector
instructions whatever the numbers of levels. All others of one question share the strata, and the rows of a in
them.
"""

import numpy as np

from unless.kernels.bits import and_count, popcount_and
from unless.kernels.compiling import (
    compiled,
    helper,
    inlined,
    log,
    popcount,
    trailing_zeros,
    without_refcount,
)

_ZERO = np.uint64(0)
# Bitmaps are counted in parts of so many words, rows in parts of so many: what is derived stays in cache.
WORDS = 512
BLOCK = 2048
# Strata are judged in parts of so many: all that is known of a part stays in the fastest cache.
_PART = 128


@inlined
def _count_pair(node, low, high, n_words):
    """Count the rows of a node that have the low bit, the high bit, and both."""
    with_low, with_high, with_both = _ZERO, _ZERO, _ZERO
    for word in range(n_words):
        in_low, in_high = node[word] & low[word], high[word]
        with_low += popcount(in_low)
        with_high += popcount(node[word] & in_high)
        with_both += popcount(in_low & in_high)
    return np.int64(with_low), np.int64(with_high), np.int64(with_both)


@inlined
def _and_count_with(left, right, both, bitmap, n_words):
    """Do what `and_count` does, and count what is shared with one more, in one run."""
    ones, with_bit = _ZERO, _ZERO
    for word in range(n_words):
        shared = left[word] & right[word]
        both[word] = shared
        ones += popcount(shared)
        with_bit += popcount(shared & bitmap[word])
    return np.int64(ones), np.int64(with_bit)


@inlined
def _and_count_pair(left, right, both, low, high, n_words):
    """Do what `and_count` and `_count_pair` do, in one run."""
    ones, with_low, with_high, with_both = _ZERO, _ZERO, _ZERO, _ZERO
    for word in range(n_words):
        shared = left[word] & right[word]
        both[word] = shared
        in_low, in_high = shared & low[word], high[word]
        ones += popcount(shared)
        with_low += popcount(in_low)
        with_high += popcount(shared & in_high)
        with_both += popcount(in_low & in_high)
    return np.int64(ones), np.int64(with_low), np.int64(with_high), np.int64(with_both)


@inlined
def _add_other(at, first_plane, n_bits, node, n_nodes, first, n_words, shift, planes, room, cells):
    """Add the rows of a node that have all of some bits of another variable, for every set of its bits."""
    if n_bits == 2:
        low, high = planes[first_plane, first:], planes[first_plane + 1, first:]
        with_low, with_high, with_both = _count_pair(node, low, high, n_words)
        cells[at + n_nodes] += with_low << shift
        cells[at + 2 * n_nodes] += with_high << shift
        cells[at + 3 * n_nodes] += with_both << shift
        return
    for bits in range(1, 1 << n_bits):
        lowest, rest = np.int64(trailing_zeros(np.uint64(bits))), bits & (bits - 1)
        depth = np.int64(popcount(np.uint64(rest)))
        plane = planes[first_plane + lowest, first:]
        left = node if rest == 0 else room[depth - 1]
        # Nothing is derived from the lowest.
        is_last = lowest == 0
        ones = popcount_and(left, plane, n_words) if is_last else and_count(left, plane, room[depth], n_words)
        cells[at + bits * n_nodes] += ones << shift


@inlined
def _add_alone(at, first_plane, n_bits, left, added, node, n_nodes, first, n_words, shift, planes, cells):
    """Derive a node and add what `_add_other` adds for one other of one bit or two, in one run."""
    low = planes[first_plane, first:]
    if n_bits == 1:
        ones, with_low = _and_count_with(left, added, node, low, n_words)
    else:
        high = planes[first_plane + 1, first:]
        ones, with_low, with_high, with_both = _and_count_pair(left, added, node, low, high, n_words)
        cells[at + 2 * n_nodes] += with_high << shift
        cells[at + 3 * n_nodes] += with_both << shift
    cells[at] += ones << shift
    cells[at + n_nodes] += with_low << shift


@inlined
def _list_planes(a, given, n_given, first_planes, n_bits, listed):
    """List the planes of the given variables, the last one's first, and then those of a; return how many."""
    size = 0
    for i in range(n_given + 1):
        variable = given[n_given - 1 - i] if i < n_given else a
        for bit in range(n_bits[variable]):
            listed[size] = first_planes[variable] + bit
            size += 1
    return size


@inlined
def _count_nodes(others, n_others, n_nodes, step, listed, layout, planes, room, cells):
    """Count the rows that have all of some bits, for every set of bits of a and the given variables.

    Sets are visited as a tree: each is derived from the one that lacks its lowest bit.
    """
    first_planes, n_bits, plane_words = layout[1], layout[2], layout[3]
    first_count = first_planes[first_planes.shape[0] - 1]
    spare = room[room.shape[0] // 2 :]
    is_alone = n_others == 1 and 1 <= n_bits[others[0]] <= 2
    for plane in range(planes.shape[0] - first_count):
        for first in range(0, plane_words[plane], WORDS):
            n_words = min(WORDS, plane_words[plane] - first)
            everything = planes[first_count + plane, first:]
            for bits in range(n_nodes):
                rest = bits & (bits - 1)
                depth = np.int64(popcount(np.uint64(rest)))
                left, added, node = everything, everything, room[depth]
                if rest != 0:
                    left = room[depth - 1]
                if bits != 0:
                    added = planes[listed[np.int64(trailing_zeros(np.uint64(bits)))], first:]
                b = others[0]
                if is_alone:
                    _add_alone(
                        bits, first_planes[b], n_bits[b], left, added, node, n_nodes, first, n_words, plane,
                        planes, cells,
                    )  # fmt: skip
                    continue
                ones = and_count(left, added, node, n_words)
                for i in range(n_others):
                    at, b = i * step + bits, others[i]
                    cells[at] += ones << plane
                    _add_other(
                        at, first_planes[b], n_bits[b], node, n_nodes, first, n_words, plane,
                        planes, spare, cells,
                    )  # fmt: skip


@inlined
def _split_by_bits(cells, size):
    """Turn the numbers of rows that have all of some bits into those that have just these."""
    step = 1
    while step < size:
        for begin in range(0, size, 2 * step):
            for cell in range(begin, begin + step):
                cells[cell] -= cells[cell + step]
        step *= 2


@compiled
def ask_by_bits(request, layout, planes, room, cells, work, answers):
    """Write statistic, df and rows used of a and each other, given some variables, by counting bits.

    `request` holds whether the likelihood ratio is asked for, the numbers of given variables and of others,
    then a, the given variables, the others, and room for the numbers of some planes. The rows of `layout` are
    the levels of each variable, its first bit plane, its bits, and the words of each plane of the counts:
    these planes are behind all others.
    """
    request, layout, planes, room, cells = without_refcount((request, layout, planes, room, cells))
    work, answers = without_refcount((work, answers))
    is_ratio, n_given, n_others = request[0] != 0, request[1], request[2]
    a, given, others = request[3], request[4:], request[4 + n_given :]
    n_bits, listed = layout[2], request[4 + n_given + n_others :]
    n_nodes = 1 << _list_planes(a, given, n_given, layout[1], n_bits, listed)
    n_a, most = 1 << n_bits[a], 0
    for i in range(n_others):
        most = max(most, n_bits[others[i]])
    step = n_nodes << most
    for cell in range(n_others * step):
        cells[cell] = 0
    _count_nodes(others, n_others, n_nodes, step, listed, layout, planes, room, cells)
    for i in range(n_others):
        n_b, table = 1 << n_bits[others[i]], cells[i * step :]
        _split_by_bits(table, n_nodes * n_b)
        pooled_statistic(a, others[i], n_a, n_b, n_nodes // n_a, table, is_ratio, i > 0, work, answers[i])


@inlined
def _append(radix, codes, cell_of_row, n_rows):
    """Make the code in one more column the last digit of each row's cell."""
    radix = np.uint16(radix)
    for i in range(n_rows):
        cell_of_row[i] = cell_of_row[i] * radix + codes[i]


@inlined
def _append_two(radix, codes, second_radix, second_codes, cell_of_row, n_rows):
    """Do so with two columns in one run."""
    both, second = np.uint16(radix * second_radix), np.uint16(second_radix)
    for i in range(n_rows):
        cell_of_row[i] = cell_of_row[i] * both + codes[i] * second + second_codes[i]


@helper
def _number(first_column, columns, n_columns, n_used, codes, first, n_rows, cell_of_row):
    """Write the cell of some rows: their codes in a first column and some more, as digits."""
    codes, cell_of_row, columns = without_refcount((codes, cell_of_row, columns))
    first_codes = codes[first_column, first:]
    for i in range(n_rows):
        cell_of_row[i] = first_codes[i]
    i = 0
    while i + 1 < n_columns:
        left, right = columns[i], columns[i + 1]
        _append_two(
            n_used[left], codes[left, first:], n_used[right], codes[right, first:], cell_of_row, n_rows
        )
        i += 2
    if i < n_columns:
        _append(n_used[columns[i]], codes[columns[i], first:], cell_of_row, n_rows)


@inlined
def _add_rows(cell_of_row, first, n_rows, counts, cells):
    """Count some rows in their cells. Rows worth more than one come first, and only they have a count."""
    n_heavy = min(max(counts.shape[0] - first, 0), n_rows)
    for i in range(n_heavy):
        cells[cell_of_row[i]] += counts[first + i]
    for i in range(n_heavy, n_rows):
        cells[cell_of_row[i]] += 1


@inlined
def _count_rows(others, n_others, n_cells, n_used, codes, counts, bases, cell_of_row, cells):
    """Count the joint table of some others with the cells of a and the strata."""
    n_rows, radix = codes.shape[1], np.uint16(n_cells)
    for first in range(0, n_rows, BLOCK):
        size = min(BLOCK, n_rows - first)
        _number(others[0], others[1:], n_others - 1, n_used, codes, first, size, cell_of_row)
        base = bases[first:]
        for i in range(size):
            cell_of_row[i] = cell_of_row[i] * radix + base[i]
        _add_rows(cell_of_row, first, size, counts, cells)


@inlined
def _sum_out(cells, outer, n_b, inner, n_cells, table):
    """Write the table of one other: the joint table summed over those before and behind it."""
    for cell in range(n_b * n_cells):
        table[cell] = 0
    for before in range(outer):
        for level in range(n_b):
            whole = table[level * n_cells :]
            for behind in range(inner):
                part = cells[((before * n_b + level) * inner + behind) * n_cells :]
                for cell in range(n_cells):
                    whole[cell] += part[cell]


@compiled
def ask_by_rows(request, most, layout, codes, counts, bases, cells, work, answers):
    """Do the same by numbering rows, for as many others at once as make a table of at most `most` cells."""
    request, layout, codes, counts, bases = without_refcount((request, layout, codes, counts, bases))
    cells, work, answers = without_refcount((cells, work, answers))
    is_ratio, n_given, n_others = request[0] != 0, request[1], request[2]
    a, given, others, n_used = request[3], request[4:], request[4 + n_given :], layout[0]
    n_rows = codes.shape[1]
    cell_of_row = bases[n_rows:]
    for first in range(0, n_rows, BLOCK):
        _number(a, given, n_given, n_used, codes, first, min(BLOCK, n_rows - first), bases[first:])
    n_a, n_z = n_used[a], 1
    for i in range(n_given):
        n_z *= n_used[given[i]]
    n_cells, begin = n_a * n_z, 0
    while begin < n_others:
        size, end = n_cells * n_used[others[begin]], begin + 1
        while end < n_others and size * n_used[others[end]] <= most:
            size *= n_used[others[end]]
            end += 1
        for cell in range(size):
            cells[cell] = 0
        _count_rows(others[begin:], end - begin, n_cells, n_used, codes, counts, bases, cell_of_row, cells)
        outer, inner = 1, size // n_cells
        for i in range(begin, end):
            n_b, table = n_used[others[i]], cells
            inner //= n_b
            if end - begin > 1:
                table = cells[size:]
                _sum_out(cells, outer, n_b, inner, n_cells, table)
            outer *= n_b
            pooled_statistic(a, others[i], n_a, n_b, n_z, table, is_ratio, i > 0, work, answers[i])
        begin = end


# ---------------------------------------------------------------------- statistics of a dense table


@inlined
def _sum_up(cells, step, n_terms, sums, inverses, n_kept, n_z):
    """Sum cells in each stratum, write the inverse too, and count the sums that are not zero."""
    for z in range(n_z):
        sums[z] = float(cells[z])
    for term in range(1, n_terms):
        more = cells[term * step :]
        for z in range(n_z):
            sums[z] += float(more[z])
    for z in range(n_z):
        inverses[z] = 1.0 / sums[z] if sums[z] > 0.0 else 0.0
        n_kept[z] += 1.0 if sums[z] > 0.0 else 0.0


@inlined
def _sum_up_a(cells, n_a, n_b, step, of_a, inverse_a, kept_a, totals, over_totals, n_z):
    """Write the margins of a in some strata, and the totals and their inverses."""
    for z in range(n_z):
        kept_a[z], totals[z] = 0.0, 0.0
    for x in range(n_a):
        part = of_a[x * step :]
        _sum_up(cells[x * step :], n_a * step, n_b, part, inverse_a[x * step :], kept_a, n_z)
        for z in range(n_z):
            totals[z] += part[z]
    for z in range(n_z):
        over_totals[z] = 1.0 / totals[z] if totals[z] > 0.0 else 0.0


@inlined
def _add_pearson(cells, of_low, share, inverse_low, inverse_high, terms, n_z):
    for z in range(n_z):
        gap = float(cells[z]) - of_low[z] * share[z]
        terms[z] += gap * gap * (inverse_low[z] * inverse_high[z])


@inlined
def _add_ratio(cells, of_low, share, terms, n_z):
    for z in range(n_z):
        observed = float(cells[z])
        if observed > 0.0:
            terms[z] += observed * log(observed / (of_low[z] * share[z]))


@inlined
def _add_terms(cells, low, high, is_ratio, over_totals, share, terms, n_z):
    """Add what every cell contributes in some strata; a variable is its levels, steps, sums and inverses."""
    n_low, low_cell, low_step, of_low, inverse_low = low
    n_high, high_cell, high_step, of_high, inverse_high = high
    for z in range(n_z):
        terms[z] = 0.0
    for j in range(n_high):
        in_high, over_high = of_high[j * high_step :], inverse_high[j * high_step :]
        for z in range(n_z):
            share[z] = in_high[z] * over_totals[z]
        for i in range(n_low):
            part, in_low = cells[i * low_cell + j * high_cell :], of_low[i * low_step :]
            if is_ratio:
                _add_ratio(part, in_low, share, terms, n_z)
            else:
                _add_pearson(part, in_low, share, inverse_low[i * low_step :], over_high, terms, n_z)


@inlined
def _keep_varying(kept_a, kept_b, scale, totals, terms, freedom, used, n_z):
    """Drop the terms of strata in which nothing varies; add the degrees of freedom and rows of the others."""
    for z in range(n_z):
        free = max(kept_a[z] - 1.0, 0.0) * max(kept_b[z] - 1.0, 0.0)
        # Rounding may leave a perfectly independent table slightly below zero.
        terms[z] = max(terms[z] * scale[z], 0.0) if free > 0.0 else 0.0
        freedom[z] += free
        used[z] += totals[z] if free > 0.0 else 0.0


@helper
def pooled_statistic(a, b, n_a, n_b, n_z, cells, is_ratio, knows_a, work, answer):
    """Write statistic, df and rows used of one table; what concerns a may be known from the one before."""
    cells, work, answer = without_refcount((cells, work, answer))
    all_totals, all_over, all_kept = work, work[n_z:], work[2 * n_z :]
    all_of_a, all_inverse_a = work[3 * n_z :], work[(3 + n_a) * n_z :]
    size = min(_PART, n_z)
    room = all_inverse_a[n_a * n_z :]
    freedom, used, kept_b, terms = room, room[size:], room[2 * size :], room[3 * size :]
    share, of_b, inverse_b = room[4 * size :], room[5 * size :], room[(5 + n_b) * size :]
    for z in range(size):
        freedom[z], used[z] = 0.0, 0.0
    statistic = 0.0
    for first in range(0, n_z, _PART):
        n = min(_PART, n_z - first)
        part, totals, over_totals, kept_a = (
            cells[first:],
            all_totals[first:],
            all_over[first:],
            all_kept[first:],
        )
        of_a, inverse_a = all_of_a[first:], all_inverse_a[first:]
        if not knows_a:
            _sum_up_a(part, n_a, n_b, n_z, of_a, inverse_a, kept_a, totals, over_totals, n)
        for z in range(n):
            kept_b[z] = 0.0
        for y in range(n_b):
            sums, inverses = of_b[y * size :], inverse_b[y * size :]
            _sum_up(part[y * n_a * n_z :], n_z, n_a, sums, inverses, kept_b, n)
        # Asked from either side, a question has the same answer to the last bit.
        low, high = (n_a, n_z, n_z, of_a, inverse_a), (n_b, n_a * n_z, size, of_b, inverse_b)
        if a > b:
            low, high = high, low
        _add_terms(part, low, high, is_ratio, over_totals, share, terms, n)
        scale = totals
        if is_ratio:
            scale = share
            for z in range(n):
                scale[z] = 2.0
        _keep_varying(kept_a, kept_b, scale, totals, terms, freedom, used, n)
        for z in range(n):
            statistic += terms[z]
    answer[0], answer[1], answer[2] = statistic, 0.0, 0.0
    for z in range(size):
        answer[1] += freedom[z]
        answer[2] += used[z]
