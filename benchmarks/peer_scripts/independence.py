"""Chi-square tests of independence by a peer named in the call: p-values of the questions it is sent."""

import json
import sys
from importlib.metadata import version

import numpy
import pandas
from serve import serve


def frame_of(codes):
    """Return the codes as a table of categories."""
    return pandas.DataFrame({f"v{place:02}": column for place, column in enumerate(codes)}).astype("category")


def pybnesian(codes):
    """Return pybnesian's test."""
    from pybnesian import ChiSquare

    texts = frame_of(codes)
    # It reads categories of text only.
    texts = texts.apply(lambda column: column.cat.rename_categories([str(k) for k in column.cat.categories]))
    test = ChiSquare(texts)

    def ask(a, b, given):
        if not given:
            return test.pvalue(a, b)
        return test.pvalue(a, b, given[0] if len(given) == 1 else given)

    return ask


def pgmpy(codes):
    """Return pgmpy's test, without its memory of answers."""
    from pgmpy.ci_tests import ChiSquare

    test = ChiSquare(frame_of(codes), use_cache=False)
    return lambda a, b, given: test.run_test(a, b, given)[1]


def causal_learn(codes):
    """Return causal-learn's test; what it remembers is thrown away before each question."""
    from causallearn.utils.cit import CIT

    test = CIT(numpy.ascontiguousarray(codes.T), "chisq")

    def ask(a, b, given):
        test.pvalue_cache.clear()
        return test(int(a[1:]), int(b[1:]), [int(name[1:]) for name in given])

    return ask


def pyagrum(codes):
    """Return pyAgrum's test, on one thread."""
    import pyagrum

    pyagrum.setNumberOfThreads(1)
    learner = pyagrum.BNLearner(pandas.DataFrame({f"v{k:02}": column for k, column in enumerate(codes)}))
    return lambda a, b, given: learner.chi2(a, b, given)[1]


PEERS = {"pybnesian": pybnesian, "pgmpy": pgmpy, "causal-learn": causal_learn, "pyagrum": pyagrum}
ask = None


def answer(question):
    """Return p, or what went wrong."""
    try:
        return float(ask(*question))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def work(request):
    """Load a table (a file of codes), or answer questions, each so many times."""
    global ask
    wish = json.loads(request)
    if "load" in wish:
        ask = PEERS[sys.argv[1]](numpy.load(wish["load"]))
        return None
    for _ in range(wish["loops"] - 1):
        for question in wish["questions"]:
            answer(question)
    return [answer(question) for question in wish["questions"]]


serve({"version": version(sys.argv[1])}, work)
