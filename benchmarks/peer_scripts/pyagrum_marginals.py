"""pyAgrum: all single marginals of a binary Markov network under new evidence."""

import json
import sys
from importlib.metadata import version
from pathlib import Path

import numpy
import pyagrum
from serve import serve

model = json.loads(Path(sys.argv[1]).read_text())
network = pyagrum.MarkovRandomField()
for name in model["names"]:
    network.add(pyagrum.LabelizedVariable(name, name, ["0", "1"]))
tables = {}
for names, cells in model["tables"]:
    table = numpy.array(cells).reshape([2] * len(names))
    order = numpy.argsort(names)
    key = tuple(sorted(names))
    tables[key] = tables.get(key, 1.0) * table.transpose(order)
for names, table in tables.items():
    factor = network.addFactor(list(names))
    # pyAgrum lists the axes of a tensor in reverse.
    axes = [names.index(name) for name in reversed(factor.names)]
    factor[:] = numpy.ascontiguousarray(table.transpose(axes))
inference = pyagrum.ShaferShenoyMRFInference(network)
turns = iter(model["evidence"])


def work(_request):
    """Ask under the next evidence."""
    inference.setEvidence(next(turns))
    inference.makeInference()
    return sum(float(inference.posterior(name).toarray()[0]) for name in model["names"])


serve({"version": version("pyagrum")}, work)
