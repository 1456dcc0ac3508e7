"""Grow-Shrink in every context: what CSGS learns with.

`algorithm` is the reference: Algorithms 1 and 2 of the paper over an independence oracle, on one page.
`cohorts` is a fast form: contexts that ask the same question of the same rows ask it once, together. The
other, for small tables, reads counts from a cube (`kernels/cube.py`). Tests hold all three to the same graphs
and the same number of questions.

    oracle = SliceOracle(PlainCounts(data), make_test("pearson"))
    graphs = csgs(oracle, data.rows, order, EdgeLimits.none(data.n_variables))
"""
