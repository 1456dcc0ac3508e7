"""pgmpy's PC with chi-square tests: one graph of a table of categories, on one thread."""

import logging
import sys
import warnings
from importlib.metadata import version

import pandas
from pgmpy.causal_discovery import PC
from serve import serve

logging.disable(logging.CRITICAL)
warnings.simplefilter("ignore")
frame = pandas.read_csv(sys.argv[1], dtype=str, keep_default_na=False).astype("category")


def work(_request):
    """Learn one graph; returns its number of edges and arcs."""
    learner = PC(
        variant="stable", ci_test="chi_square", significance_level=0.05, n_jobs=1, show_progress=False
    )
    return len(learner.fit(frame).causal_graph_.edges())


serve({"version": version("pgmpy")}, work)
