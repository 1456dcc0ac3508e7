"""What is asked of Unless, in one place: a table goes in, findings come out."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Columns = Mapping[str, npt.NDArray[Any]]
Pair = tuple[str, str]
# The share of findings that may be false, as `unless.learn` has it by default.
FDR = 0.05


@dataclass(frozen=True)
class Finding:
    """A statement that claims a dependence."""

    kind: str
    pair: Pair
    sentence: str


def frame_of(columns: Columns) -> Any:
    """Return the columns as the table that a user has."""
    import pandas

    return pandas.DataFrame(dict(columns))


def findings_of(columns: Columns, **settings: Any) -> list[Finding]:
    """Learn from a table with default settings but those given, and return the findings."""
    return [
        Finding(one.kind, named(*one.pair), str(one)) for one in statements_of(columns, **settings).findings
    ]


def statements_of(columns: Columns, **settings: Any) -> Any:
    """Learn from a table with default settings but those given, and return all that is said of it."""
    import unless

    known: Any = unless
    return known.learn(frame_of(columns), show_progress=False, **settings).statements_


def pairs_of(findings: Iterable[Finding]) -> set[Pair]:
    """Return the pairs that findings are about."""
    return {one.pair for one in findings}


def named(a: str, b: str) -> Pair:
    """Return a pair in the order of names."""
    return (a, b) if a < b else (b, a)


def standard(values: Floats) -> Floats:
    """Return numbers with mean 0 and variance 1."""
    scaled: Floats = (values - values.mean()) / max(float(values.std()), 1e-12)
    return scaled


def drawn_category(probabilities: Floats, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Draw a level for each row from its probabilities (row x level)."""
    shares = np.cumsum(probabilities / probabilities.sum(axis=1, keepdims=True), axis=1)
    drawn: npt.NDArray[np.int64] = (rng.random((len(probabilities), 1)) > shares[:, :-1]).sum(axis=1)
    return drawn


def labelled(codes: npt.NDArray[Any], labels: str) -> npt.NDArray[Any]:
    """Name codes 0, 1, 2, ... by letters."""
    named_codes: npt.NDArray[Any] = np.array(list(labels), dtype=object)[codes]
    return named_codes
