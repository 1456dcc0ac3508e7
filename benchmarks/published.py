"""Findings of others: the published statements about contexts, asked of the data and of what was learned."""

import json

from benchmarks.options import Options
from benchmarks.result import Entry, Line, Note, Table

TITLE = "Published findings"
# Contexts of ALARM too small for the test to see what the generating network holds.
LOW_POWER = 2


def run(options: Options) -> list[Entry]:
    """Ask about each statement; learn each table once."""
    statements = json.loads(options.need("published_statements.json").read_text())["statements"]
    learned = {name: _learned(options, name) for name in sorted({one["dataset"] for one in statements})}
    rows, n_agreed, n_open = [], 0, 0
    for one in statements:
        est = learned[one["dataset"]]
        asked = est.ask(one["a"], one["b"], given=one["given"], context=one["context"])
        wanted = one["expected"] if one["df"] else "undecided"
        n_agreed += asked.answer == wanted
        n_open += not one["df"]
        said = est.statements_.about(one["a"], one["b"])
        rows.append(_row(one, wanted, asked, said))
    headers = ("table", "pair", "context", "wanted", "data", "model", "p", "statement about the pair")
    return [
        Table(headers, tuple(rows)),
        Line(
            "statements agreed to by `ask`",
            n_agreed,
            f"of {len(statements)}",
            at_least=len(statements) - LOW_POWER,
        ),
        Note(
            f"{n_open} of them are degenerate (no degree of freedom) and wanted *undecided*; {LOW_POWER} "
            "contexts of ALARM have too few rows for the dependence of the generating network to show."
        ),
    ]


def _learned(options: Options, name: str):
    import unless

    return unless.CSGS(n_jobs=-1, show_progress=False).fit(unless.read(options.need(f"{name}/data.csv.gz")))


def _row(one: dict, wanted: str, asked, said) -> tuple[str, ...]:
    context = ", ".join(f"{name} = {label}" for name, label in one["context"].items())
    given = f" given {', '.join(one['given'])}" if one["given"] else ""
    model = {None: "unknown", True: "independent", False: "dependent"}[asked.separated]
    answer = asked.answer if asked.answer == wanted else f"**{asked.answer}**"
    pair = f"{one['a']} - {one['b']}{given}"
    return one["dataset"], pair, context, wanted, answer, model, f"{asked.data.p:.2g}", said.sentence
