"""Every format of models by the ending of its files: how to add one is in `unless.formats`."""

import os
from collections.abc import Callable, Mapping
from pathlib import PurePath

from unless.errors import FileFormatError, SettingError
from unless.formats.bif import read_bif, write_bif
from unless.formats.graphml import write_graphml
from unless.formats.json_model import read_json, write_json
from unless.formats.libra import read_mn, write_mn
from unless.formats.record import Record, load_record, save_record
from unless.formats.text import PathLike, ending_of, take
from unless.formats.uai import read_uai, write_uai
from unless.inference.model import LogLinearModel


def read_model(path: PathLike) -> LogLinearModel:
    """Read a model with weights, by the ending of the file: .unless, .mn, .uai, .bif or .json, also .gz.

    What comes by standard input ("-") or a pipe is known by how it begins.

    >>> import tempfile, unless
    >>> folder = tempfile.TemporaryDirectory()
    >>> truth = unless.datasets.make_csi(5, random_state=0)
    >>> write_model(truth, f"{folder.name}/truth.mn")
    >>> read_model(f"{folder.name}/truth.mn")
    <LogLinearModel: 32 features over 5 variables>
    >>> folder.cleanup()
    """
    path = take(path)
    return READERS[_ending(path, READERS, "read")](path)


def write_model(model: LogLinearModel, path: PathLike) -> None:
    """Write a model by the ending of the file: .unless, .mn, .uai, .bif or .json.

    A .bif file gets a directed network with the same joint distribution, found by eliminating variables one
    after the other; it is refused where that takes too many probabilities. A .graphml file gets the graph of
    the model: which variables appear together, without the weights. See `read_model` for an example.
    """
    WRITERS[_ending(path, WRITERS, "written")](model, path)


def _read_unless(path: PathLike) -> LogLinearModel:
    kept = load_record(path).structure
    if not isinstance(kept, LogLinearModel):
        raise FileFormatError(
            f"{os.fspath(path)!r} holds a structure ({type(kept).__name__}) without weights; fit them first."
        )
    return kept


def _refuse_graph(path: PathLike) -> LogLinearModel:
    raise SettingError(f"{os.fspath(path)!r} holds a graph, which has no weights; fit them first.")


READERS: dict[str, Callable[[PathLike], LogLinearModel]] = {
    ".unless": _read_unless,
    ".mn": read_mn,
    ".uai": read_uai,
    ".bif": lambda path: read_bif(path).model,
    ".json": read_json,
    ".graphml": _refuse_graph,
}
WRITERS: dict[str, Callable[[LogLinearModel, PathLike], None]] = {
    ".unless": lambda model, path: save_record(Record(model), path),
    ".mn": write_mn,
    ".uai": write_uai,
    ".bif": write_bif,
    ".json": write_json,
    ".graphml": lambda model, path: write_graphml(model.features.graph(), path),
}


def _ending(path: PathLike, known: Mapping[str, object], done: str) -> str:
    name = os.fspath(path)
    ending = ending_of(path) if known is READERS else PurePath(name.lower()).suffix
    if ending not in known:
        raise SettingError(
            f"A model cannot be {done} as {name!r}; name a file that ends in {', '.join(known)}."
        )
    return ending
