"""causal-learn's PC with chi-square tests: one graph of a table of categories."""

import sys
from importlib.metadata import version

import pandas
from causallearn.search.ConstraintBased.PC import pc
from serve import serve

frame = pandas.read_csv(sys.argv[1], dtype=str, keep_default_na=False)
codes = frame.apply(lambda column: column.astype("category").cat.codes).to_numpy()


def work(_request):
    """Learn one graph; returns its number of edges and arcs."""
    return pc(codes, 0.05, "chisq", show_progress=False, verbose=False).G.get_num_edges()


serve({"version": version("causal-learn")}, work)
