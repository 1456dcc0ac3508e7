"""pyAgrum: one graph of a table of categories, by GHC (greedy hill climbing) or MIIC, on one thread."""

import sys
from importlib.metadata import version

import pyagrum
from serve import serve

path, method = sys.argv[1:]


def work(_request):
    """Learn one graph from the file; returns its number of arcs and edges."""
    learner = pyagrum.BNLearner(path)
    learner.setNumberOfThreads(1)
    if method == "MIIC":
        learner.useMIIC()
        graph = learner.learnPDAG()
        return graph.sizeArcs() + graph.sizeEdges()
    learner.useGreedyHillClimbing()
    return learner.learnDAG().sizeArcs()


serve({"version": version("pyagrum")}, work)
