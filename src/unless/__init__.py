"""Unless finds out what depends on what in a table of categories, and when."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unless import datasets as datasets
    from unless.data.dataset import Dataset as Dataset
    from unless.data.domain import Context as Context
    from unless.data.domain import Domain as Domain
    from unless.data.domain import Variable as Variable
    from unless.data.read import read as read

__version__ = "0.1.0"

# Where each public name lives. They load when first used, so that `import unless` costs next to nothing.
_HOMES = {
    "Context": "unless.data.domain",
    "Dataset": "unless.data.dataset",
    "Domain": "unless.data.domain",
    "Variable": "unless.data.domain",
    "datasets": "unless.datasets",
    "errors": "unless.errors",
    "read": "unless.data.read",
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
