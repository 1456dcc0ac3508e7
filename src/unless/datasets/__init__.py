"""Small classical tables and synthetic ones with a known truth. Imports formats and below."""

from unless.datasets.synthetic import CSIDomain as CSIDomain
from unless.datasets.synthetic import make_csi as make_csi
from unless.datasets.tables import Description as Description
from unless.datasets.tables import catalogue as catalogue
from unless.datasets.tables import load as load
from unless.datasets.tables import load_titanic as load_titanic
from unless.datasets.tables import load_ucb_admissions as load_ucb_admissions

__all__ = [
    "CSIDomain",
    "Description",
    "catalogue",
    "load",
    "load_titanic",
    "load_ucb_admissions",
    "make_csi",
]
# dir(unless.datasets) shows these, and none of the files of this package.
__dir__ = __all__.copy
