"""pgmpy: all single marginals of a binary Markov network under new evidence."""

import json
import logging
import sys
from importlib.metadata import version
from itertools import combinations
from pathlib import Path

from pgmpy.factors.discrete import DiscreteFactor
from pgmpy.inference import VariableElimination
from pgmpy.models import DiscreteMarkovNetwork
from serve import serve

logging.disable(logging.CRITICAL)
model = json.loads(Path(sys.argv[1]).read_text())
network = DiscreteMarkovNetwork()
network.add_nodes_from(model["names"])
for names, cells in model["tables"]:
    network.add_edges_from(combinations(names, 2))
    network.add_factors(DiscreteFactor(names, [2] * len(names), cells))
inference = VariableElimination(network)
turns = iter(model["evidence"])


def work(_request):
    """Ask under the next evidence, one variable after the other."""
    evidence = {name: int(label) for name, label in next(turns).items()}
    asked = [name for name in model["names"] if name not in evidence]
    return sum(
        float(inference.query([name], evidence=evidence, show_progress=False).values[0]) for name in asked
    )


serve({"version": version("pgmpy")}, work)
