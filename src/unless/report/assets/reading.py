"""Reads the files beside it, each once."""

from functools import cache
from importlib.resources import files


@cache
def asset(name: str) -> str:
    """Return the text of a file of the page."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


@cache
def script() -> str:
    """Return the page's own scripts as one, closed to the outside."""
    parts = sorted(
        one.name for one in files(__package__).joinpath("js").iterdir() if one.name.endswith(".js")
    )
    body = "\n".join(asset(f"js/{part}") for part in parts)
    return f'"use strict";\n(() => {{\n{body}}})();\n'
