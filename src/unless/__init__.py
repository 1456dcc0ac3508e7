"""Unless finds out what depends on what in a table of categories, and when."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unless import datasets as datasets
    from unless import errors as errors
    from unless.data.dataset import Dataset as Dataset
    from unless.data.domain import Context as Context
    from unless.data.domain import Domain as Domain
    from unless.data.domain import Region as Region
    from unless.data.domain import Variable as Variable
    from unless.data.plan import Plan as Plan
    from unless.data.prepare import prepare as prepare
    from unless.data.read import read as read
    from unless.evaluation.comparison import compare_structures as compare_structures
    from unless.evaluation.divergence import kl_divergence as kl_divergence
    from unless.evaluation.stability import Stability as Stability
    from unless.formats.catalogue import read_model as read_model
    from unless.formats.catalogue import write_model as write_model
    from unless.formats.peers import from_pgmpy as from_pgmpy
    from unless.formats.peers import from_pyagrum as from_pyagrum
    from unless.formats.peers import to_pgmpy as to_pgmpy
    from unless.formats.peers import to_pyagrum as to_pyagrum
    from unless.independence.oracle import IndependenceTester as IndependenceTester
    from unless.independence.tests import BayesianTest as BayesianTest
    from unless.independence.tests import LikelihoodRatioTest as LikelihoodRatioTest
    from unless.independence.tests import PearsonTest as PearsonTest
    from unless.independence.tests import Verdict as Verdict
    from unless.independence.tests import ask as ask
    from unless.inference.model import LogLinearModel as LogLinearModel
    from unless.knowledge.comparing import compare_groups as compare_groups
    from unless.knowledge.comparing import compare_tables as compare_tables
    from unless.knowledge.explaining import explain as explain
    from unless.learners.chow_liu import ChowLiu as ChowLiu
    from unless.learners.classifier import UnlessClassifier as UnlessClassifier
    from unless.learners.csgs import CSGS as CSGS
    from unless.learners.csibmap import CSIBMAP as CSIBMAP
    from unless.learners.csmpl import CSMPL as CSMPL
    from unless.learners.cspc import CSPC as CSPC
    from unless.learners.dtsl import DTSL as DTSL
    from unless.learners.files import load as load
    from unless.learners.files import save as save
    from unless.learners.ggs import GGS as GGS
    from unless.learners.gsmn import GSMN as GSMN
    from unless.learners.gssl import CSGSSL as CSGSSL
    from unless.learners.gssl import GSSL as GSSL
    from unless.learners.ibmap import IBMAPHC as IBMAPHC
    from unless.learners.registry import learn as learn
    from unless.report.plotting import plot_contexts as plot_contexts
    from unless.report.plotting import plot_evidence as plot_evidence
    from unless.report.plotting import plot_links as plot_links
    from unless.report.plotting import plot_network as plot_network
    from unless.report.writing import write_report as write_report
    from unless.structures.canonical import CanonicalModel as CanonicalModel
    from unless.structures.graph import Condition as Condition
    from unless.structures.graph import Feature as Feature
    from unless.structures.graph import FeatureSet as FeatureSet
    from unless.structures.graph import Graph as Graph
    from unless.structures.labelled import LabelledGraph as LabelledGraph
    from unless.structures.labelled import Link as Link
    from unless.weights.fit import fit_weights as fit_weights
    from unless.weights.intervals import weight_intervals as weight_intervals
    from unless.weights.priors import Gaussian as Gaussian
    from unless.weights.priors import Laplace as Laplace

__version__ = "0.1.0"

# The module of each public name. They load when first used, so that `import unless` costs next to nothing.
_HOMES = {
    "BayesianTest": "unless.independence.tests",
    "CSGS": "unless.learners.csgs",
    "ChowLiu": "unless.learners.chow_liu",
    "CSGSSL": "unless.learners.gssl",
    "CSIBMAP": "unless.learners.csibmap",
    "CSMPL": "unless.learners.csmpl",
    "CSPC": "unless.learners.cspc",
    "CanonicalModel": "unless.structures.canonical",
    "Condition": "unless.structures.graph",
    "Context": "unless.data.domain",
    "DTSL": "unless.learners.dtsl",
    "Dataset": "unless.data.dataset",
    "Domain": "unless.data.domain",
    "Feature": "unless.structures.graph",
    "FeatureSet": "unless.structures.graph",
    "GGS": "unless.learners.ggs",
    "GSMN": "unless.learners.gsmn",
    "GSSL": "unless.learners.gssl",
    "Gaussian": "unless.weights.priors",
    "Graph": "unless.structures.graph",
    "IBMAPHC": "unless.learners.ibmap",
    "IndependenceTester": "unless.independence.oracle",
    "LabelledGraph": "unless.structures.labelled",
    "Laplace": "unless.weights.priors",
    "LikelihoodRatioTest": "unless.independence.tests",
    "Link": "unless.structures.labelled",
    "LogLinearModel": "unless.inference.model",
    "PearsonTest": "unless.independence.tests",
    "Plan": "unless.data.plan",
    "Region": "unless.data.domain",
    "UnlessClassifier": "unless.learners.classifier",
    "Variable": "unless.data.domain",
    "Verdict": "unless.independence.tests",
    "ask": "unless.independence.tests",
    "compare_groups": "unless.knowledge.comparing",
    "compare_structures": "unless.evaluation.comparison",
    "compare_tables": "unless.knowledge.comparing",
    "Stability": "unless.evaluation.stability",
    "datasets": "unless.datasets",
    "errors": "unless.errors",
    "explain": "unless.knowledge.explaining",
    "fit_weights": "unless.weights.fit",
    "from_pgmpy": "unless.formats.peers",
    "from_pyagrum": "unless.formats.peers",
    "kl_divergence": "unless.evaluation.divergence",
    "learn": "unless.learners.registry",
    "load": "unless.learners.files",
    "plot_contexts": "unless.report.plotting",
    "plot_evidence": "unless.report.plotting",
    "plot_links": "unless.report.plotting",
    "plot_network": "unless.report.plotting",
    "prepare": "unless.data.prepare",
    "read": "unless.data.read",
    "read_model": "unless.formats.catalogue",
    "save": "unless.learners.files",
    "to_pgmpy": "unless.formats.peers",
    "to_pyagrum": "unless.formats.peers",
    "weight_intervals": "unless.weights.intervals",
    "write_model": "unless.formats.catalogue",
    "write_report": "unless.report.writing",
}

__all__ = sorted(_HOMES)  # noqa: PLE0605 (a literal list would be a second copy of the table above)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'unless' has no attribute {name!r}")
    module = _import_module(_HOMES[name])
    value = module if module.__name__ == f"unless.{name}" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
