"""Unless itself, in a process like its peers': all canonical graphs of a table of categories."""

import json
import sys

from serve import serve

import unless

path, settings = sys.argv[1], json.loads(sys.argv[2])
data = unless.read(path)
learner = unless.CSGS(show_progress=False, **settings)
# Loads the compiled kernels, so that a single turn does not count them.
learner.fit(unless.Dataset.from_codes(data.domain, data.rows[:60]))


def work(_request):
    """Learn all graphs; returns how many contexts and different graphs there are, and what was asked."""
    learner.fit(data)
    model = learner.structure_
    return [len(model), model.n_graphs, learner.n_tests_, learner.n_distinct_tests_]


serve({"version": unless.__version__, "n_rows": data.n_rows, "n_columns": data.n_variables}, work)
