"""pybnesian's PC with chi-square tests: one graph of a table of categories."""

import sys
from importlib.metadata import version

import pandas
import pybnesian
from serve import serve

frame = pandas.read_csv(sys.argv[1], dtype=str, keep_default_na=False).astype("category")


def work(_request):
    """Learn one graph; returns its number of edges and arcs."""
    graph = pybnesian.PC().estimate(pybnesian.ChiSquare(frame))
    return graph.num_edges() + graph.num_arcs()


serve({"version": version("pybnesian"), "rows": len(frame)}, work)
