r"""`unless query`: ask a model how probable something is, or what is most probable.

{QUOTING}

\b
Examples:
  unless query fitted.unless Admit
  unless query fitted.unless Admit Gender --given Dept=A
  unless query fitted.unless --map --given Admit=Admitted
  unless query network.bif Rain --method belief --json

\b
The JSON document, keys sorted:
  format, version   "unless-answer", 1
  given             what was given, {} for nothing
  method            "exact", "gibbs" or "belief"
  details           what an approximate method tells of its run
  variables         name and levels, in the order asked
  cells             one for each combination of levels, the last
                    variable changing fastest:
    labels          one for each variable
    probability, error   error is the standard error of "gibbs", else
                    null; "exact" has none, that of "belief" is unknown
  with --map instead of variables and cells:
    assignment      name and label of each variable
    probability, log_probability   of the whole assignment
"""

from typing import TYPE_CHECKING, Any

import click

from unless.cli.options import gathered, given_option, make_command, memory_option, seed_option
from unless.cli.output import context_text, number, probability_text, say, say_json, say_table
from unless.data.showing import visible

if TYPE_CHECKING:
    from collections.abc import Mapping

    from unless.inference.model import LogLinearModel
    from unless.inference.results import Distribution, MostProbable

# A longer table is cut short.
MOST_ROWS = 50


@make_command("query", "Ask a model how probable something is, or what is most probable.", __doc__)
@click.argument("model", type=click.Path())
@click.argument("variables", metavar="[VARIABLE]...", nargs=-1)
@given_option
@click.option(
    "--map", "most_probable", is_flag=True, help="The most probable joint values, by default of all."
)
@click.option(
    "--method",
    type=click.Choice(["auto", "exact", "gibbs", "belief"]),
    default="auto",
    show_default=True,
    help="Exact, by Gibbs sampling, by belief propagation; auto is exact where it fits, else gibbs.",
)
@seed_option
@memory_option
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
def command(
    model: str,
    variables: tuple[str, ...],
    given: tuple[tuple[str, str], ...],
    most_probable: bool,
    as_json: bool,
    **how: Any,
) -> None:
    """Say how probable the levels of each VARIABLE are under MODEL; of several, of their combinations.

    MODEL may be a pipe, or - for standard input.
    """
    from unless.formats.catalogue import read_model

    if most_probable and how["method"] in ("gibbs", "belief"):
        raise click.UsageError("--map is answered exactly or not at all")
    if not variables and not most_probable:
        raise click.UsageError("Name a variable to ask about, or ask for the most probable of all by --map")
    facts = gathered("--given", given)
    net = read_model(model)
    if most_probable:
        _tell_best(_best(net, variables, facts, how["max_memory"]), facts, as_json)
        return
    answer = net.query(
        variables, facts, method=how["method"], max_memory=how["max_memory"], random_state=how["seed"]
    )
    if as_json:
        _say_cells(answer)
    else:
        _tell_cells(answer)


def _best(
    net: "LogLinearModel", variables: tuple[str, ...], facts: dict[str, str], max_memory: str | None
) -> "MostProbable":
    from unless.errors import TooLarge
    from unless.runtime.memory import show_memory

    if not net.exact.fits(max_memory):
        raise TooLarge(
            f"The most probable values need tables of about {show_memory(net.exact.cost.n_bytes)}; raise "
            "max_memory=."
        )
    return net.map_query(variables or None, facts, max_memory=max_memory)


def _tell_best(best: "MostProbable", facts: dict[str, str], as_json: bool) -> None:
    from math import exp

    if as_json:
        document = {
            "assignment": dict(best),
            "probability": exp(best.log_probability),
            "log_probability": number(best.log_probability),
        }
        say_json({**_opening(facts, "exact", {}), **document})
        return
    _say_given(facts)
    say(f"Exact: together they have probability {probability_text(exp(best.log_probability))}.\n")
    say_table(
        ("Variable", "Most probable"), [(visible(name), visible(label)) for name, label in best.items()]
    )


def _tell_cells(answer: "Distribution") -> None:
    from itertools import product

    import numpy as np

    _say_given(answer.evidence)
    say(f"{answer.details.get('report', 'Exact')}.\n")
    shown = np.arange(len(answer))
    if len(answer) > MOST_ROWS:
        shown = np.argsort(-answer.probabilities, axis=None, kind="stable")[:MOST_ROWS]
    wanted = {int(cell): row for row, cell in enumerate(shown)}
    rows: list[tuple[str, ...]] = [()] * len(shown)
    for cell, labels in enumerate(product(*answer.labels)):
        if cell in wanted:
            error = () if answer.error is None else (f"{answer.error.flat[cell]:.4f}",)
            rows[wanted[cell]] = (
                *map(visible, labels),
                probability_text(float(answer.probabilities.flat[cell])),
                *error,
            )
    headers = ("Probability",) if answer.error is None else ("Probability", "Standard error")
    n_labels = len(answer.names)
    say_table((*map(visible, answer.names), *headers), rows, numbers=range(n_labels, n_labels + len(headers)))
    if len(answer) > len(rows):
        say(f"... and {len(answer) - len(rows):,} less probable; --json prints all.")


def _say_cells(answer: "Distribution") -> None:
    from itertools import product

    errors = [None] * len(answer) if answer.error is None else map(number, answer.error.ravel().tolist())
    probabilities = answer.probabilities.ravel().tolist()
    details = {
        name: number(value) if isinstance(value, float) else value for name, value in answer.details.items()
    }
    document = {
        "variables": [{"name": one.name, "levels": list(one.levels)} for one in answer.variables],
        "cells": [
            {"labels": list(labels), "probability": probability, "error": error}
            for labels, probability, error in zip(product(*answer.labels), probabilities, errors, strict=True)
        ],
    }
    say_json({**_opening(dict(answer.evidence), answer.method, details), **document})


def _opening(facts: dict[str, str], method: str, details: dict[str, Any]) -> dict[str, Any]:
    return {"format": "unless-answer", "version": 1, "given": facts, "method": method, "details": details}


def _say_given(facts: "Mapping[str, str]") -> None:
    from unless.data.domain import Context

    if facts:
        say(f"Given {context_text(Context(facts))}.")
