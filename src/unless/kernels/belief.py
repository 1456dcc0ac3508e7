"""Belief propagation on a factor graph, in logarithms: factors one after another, forth and back."""

from typing import Any, NamedTuple

import numpy as np

from unless.kernels.compiling import compiled, exp, inlined, log, without_refcount


class Factors(NamedTuple):
    """Factors of two or more variables; each (factor, variable) is an edge, in the order of its table."""

    first: Any  # int64 (factors + 1,): where the edges of a factor begin
    variable: Any  # int64 (edges,)
    message: Any  # int64 (edges,): where the message along an edge begins
    table: Any  # int64 (factors,): where the table of a factor begins
    values: Any  # float64 (cells of all tables,): log potentials
    n_levels: Any  # int64 (variables,)
    offset: Any  # int64 (variables,): where the levels of a variable begin


@inlined
def _without(total, n_zeros, term):
    """Take one term out of a sum whose terms of -inf are counted apart."""
    if term == -np.inf:
        return total if n_zeros == 1 else -np.inf
    return total - term if n_zeros == 0 else -np.inf


@inlined
def _gather(unary, factors, messages, totals, n_zeros):
    """Add up, for each level, all that is said about it; done anew each time, so that no error builds up."""
    for cell in range(unary.shape[0]):
        zero = unary[cell] == -np.inf
        totals[cell] = 0.0 if zero else unary[cell]
        n_zeros[cell] = 1 if zero else 0
    for edge in range(factors.variable.shape[0]):
        variable = factors.variable[edge]
        for level in range(factors.n_levels[variable]):
            term = messages[factors.message[edge] + level]
            if term == -np.inf:
                n_zeros[factors.offset[variable] + level] += 1
            else:
                totals[factors.offset[variable] + level] += term


@inlined
def _receive(factor, factors, messages, totals, n_zeros, incoming):
    """Find what the variables of a factor hear from everyone else."""
    low = factors.first[factor]
    for edge in range(low, factors.first[factor + 1]):
        variable = factors.variable[edge]
        at, begin = factors.offset[variable], factors.message[edge]
        for level in range(factors.n_levels[variable]):
            cell = at + level
            incoming[edge - low, level] = _without(totals[cell], n_zeros[cell], messages[begin + level])


@inlined
def _step(digits, low, n_edges, factors):
    """Go on to the next cell of a table, the last axis fastest."""
    for i in range(n_edges - 1, -1, -1):
        digits[i] += 1
        if digits[i] < factors.n_levels[factors.variable[low + i]]:
            return
        digits[i] = 0


@inlined
def _cell_value(i, value, n_missing, incoming, digits):
    return _without(value, n_missing, incoming[i, digits[i]])


@inlined
def _marginalise(factor, factors, incoming, outgoing, tops, digits, sums, missing):
    """Sum the table, times all incoming messages but that of the edge itself, over the other axes."""
    low, n_edges = factors.first[factor], factors.first[factor + 1] - factors.first[factor]
    n_cells = 1
    for i in range(n_edges):
        n_levels = factors.n_levels[factors.variable[low + i]]
        n_cells *= n_levels
        digits[i] = 0
        for level in range(n_levels):
            tops[i, level] = -np.inf
            outgoing[i, level] = 0.0
    for cell in range(n_cells):
        total, n_missing = factors.values[factors.table[factor] + cell], 0
        for i in range(n_edges):
            term = incoming[i, digits[i]]
            if term == -np.inf:
                n_missing += 1
            else:
                total += term
        sums[cell], missing[cell] = total, n_missing
        for i in range(n_edges):
            value = _cell_value(i, total, n_missing, incoming, digits)
            tops[i, digits[i]] = max(tops[i, digits[i]], value)
        _step(digits, low, n_edges, factors)
    for cell in range(n_cells):
        for i in range(n_edges):
            value = _cell_value(i, sums[cell], missing[cell], incoming, digits)
            if value > -np.inf:
                outgoing[i, digits[i]] += exp(value - tops[i, digits[i]])
        _step(digits, low, n_edges, factors)
    for i in range(n_edges):
        for level in range(factors.n_levels[factors.variable[low + i]]):
            if outgoing[i, level] > 0.0:
                outgoing[i, level] = tops[i, level] + log(outgoing[i, level])
            else:
                outgoing[i, level] = -np.inf


@inlined
def _scale(n_levels, message):
    """Make a log message sum to one; False if it allows no level."""
    top = -np.inf
    for level in range(n_levels):
        top = max(top, message[level])
    if top == -np.inf:
        return False
    total = 0.0
    for level in range(n_levels):
        total += exp(message[level] - top)
    for level in range(n_levels):
        message[level] -= top + log(total)
    return True


@inlined
def _send(factor, factors, messages, totals, n_zeros, outgoing, damping):
    """Replace the messages of a factor; returns the largest change of a probability, or -1 if impossible."""
    low = factors.first[factor]
    change = 0.0
    for edge in range(low, factors.first[factor + 1]):
        variable, begin = factors.variable[edge], factors.message[edge]
        n_levels, at = factors.n_levels[variable], factors.offset[variable]
        message = outgoing[edge - low]
        if not _scale(n_levels, message):
            return -1.0
        for level in range(n_levels):
            old = messages[begin + level]
            # What is impossible is so at once: half an impossibility is none.
            if damping > 0.0 and old > -np.inf and message[level] > -np.inf:
                message[level] = (1.0 - damping) * message[level] + damping * old
        if not _scale(n_levels, message):
            return -1.0
        for level in range(n_levels):
            old, new = messages[begin + level], message[level]
            change = max(change, abs(exp(new) - exp(old)))
            if old == -np.inf:
                n_zeros[at + level] -= 1
            else:
                totals[at + level] -= old
            if new == -np.inf:
                n_zeros[at + level] += 1
            else:
                totals[at + level] += new
            messages[begin + level] = new
    return change


@compiled
def propagate(unary, factors, messages, damping, tolerance, max_iterations, beliefs):
    """Pass messages until none changes by more than the tolerance, and fill in log beliefs.

    Returns the number of iterations and the last change, which is -1 where no state is possible.
    """
    factors = without_refcount(factors)
    messages, beliefs = without_refcount((messages, beliefs))
    n_factors = factors.table.shape[0]
    widest, largest, most = 1, 1, max(1, factors.n_levels.max())
    for factor in range(n_factors):
        widest = max(widest, factors.first[factor + 1] - factors.first[factor])
        end = factors.table[factor + 1] if factor + 1 < n_factors else factors.values.shape[0]
        largest = max(largest, end - factors.table[factor])
    incoming, outgoing, tops = np.zeros((widest, most)), np.zeros((widest, most)), np.zeros((widest, most))
    digits = np.zeros(widest, dtype=np.int64)
    sums, missing = np.zeros(largest), np.zeros(largest, dtype=np.int64)
    totals, n_zeros = np.zeros(unary.shape[0]), np.zeros(unary.shape[0], dtype=np.int64)
    change, iteration = 0.0, 0
    while iteration < max_iterations:
        change = 0.0
        _gather(unary, factors, messages, totals, n_zeros)
        for i in range(n_factors):
            factor = i if iteration % 2 == 0 else n_factors - 1 - i
            _receive(factor, factors, messages, totals, n_zeros, incoming)
            _marginalise(factor, factors, incoming, outgoing, tops, digits, sums, missing)
            changed = _send(factor, factors, messages, totals, n_zeros, outgoing, damping)
            if changed < 0.0:
                return iteration, -1.0
            change = max(change, changed)
        iteration += 1
        if change <= tolerance:
            break
    _gather(unary, factors, messages, totals, n_zeros)
    for variable in range(factors.n_levels.shape[0]):
        at, n_levels = factors.offset[variable], factors.n_levels[variable]
        for cell in range(at, at + n_levels):
            beliefs[cell] = totals[cell] if n_zeros[cell] == 0 else -np.inf
        if not _scale(n_levels, beliefs[at : at + n_levels]):
            return iteration, -1.0
    return iteration, change
