"""What the page says in a context is what `Statement.state_in` says."""

import json
import shutil
import subprocess
from itertools import product
from pathlib import Path

import msgspec
import numpy as np
import pytest

import unless
from unless.data.domain import Region
from unless.knowledge.sentences import Gate
from unless.knowledge.statements import KINDS, Statement
from unless.report.html import to_json
from unless.report.writing import gather

SCRIPT = Path(unless.__file__).parent / "report" / "assets" / "js" / "03_states.js"
ASK = """
const asked = JSON.parse(text);
return asked.contexts.map((one) => asked.statements.map((said) => stateIn(said, new Map(one))));
"""


@pytest.fixture(scope="module")
def states_by_script(request):
    """Return a function that asks the script of the page, run by node or else by the browser."""
    node, script = shutil.which("node"), SCRIPT.read_text(encoding="utf-8")

    def ask(statements, contexts):
        text = json.dumps({"statements": statements, "contexts": [list(one.items()) for one in contexts]})
        if node is None:
            page = request.getfixturevalue("browser").new_page()
            answer = page.evaluate(f"(text) => {{ {script} {ASK} }}", text)
            page.close()
            return answer
        run = f"""{script}
        const text = require("fs").readFileSync(0, "utf-8");
        console.log(JSON.stringify((() => {{ {ASK} }})()));"""
        done = subprocess.run([node, "-e", run], input=text, capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    return ask


def every_context(domain):
    for levels in product(*([None, *variable.levels] for variable in domain)):
        yield {name: label for name, label in zip(domain.names, levels, strict=True) if label is not None}


@pytest.mark.parametrize("table", ["berkeley", "titanic"])
def test_every_context_of_a_table(table, request, states_by_script):
    est = request.getfixturevalue(table)
    contexts = list(every_context(est.data_.domain))
    statements = msgspec.json.decode(to_json(request.getfixturevalue(f"{table}_page")))["statements"]
    expected = [[one.state for one in est.statements_.given(context)] for context in contexts]
    assert states_by_script(statements, contexts) == expected


def test_every_kind_in_some_contexts(kinds, states_by_script):
    data, statements = kinds
    rng = np.random.default_rng(1)
    contexts = [some_context(rng, data.domain) for _ in range(300)]
    page = msgspec.json.decode(to_json(gather(data, statements)))
    expected = [[one.state for one in statements.given(context)] for context in contexts]
    assert states_by_script(page["statements"], contexts) == expected
    assert {state for row in expected for state in row} == {
        "holds", "holds in part", "absent", "not settled", "fixed",
    }  # fmt: skip


def some_context(rng, domain):
    chosen = [variable for variable in domain if rng.random() < 0.25]
    return {variable.name: variable.levels[rng.integers(len(variable.levels))] for variable in chosen}


# Names that objects of the script have by birth.
NAMES = ("__proto__", "constructor", "a", "b", "c", "1", "toString")


def test_random_gates(states_by_script):
    rng = np.random.default_rng(2)
    domain = unless.Domain(tuple(unless.Variable(name, ("0", "x y", "<", "\u202e")) for name in NAMES))
    statements = [some_statement(rng, domain) for _ in range(300)]
    contexts = [some_context(rng, domain) for _ in range(200)]
    plain = json.loads(json.dumps([one.to_dict(tables=False) for one in statements]))
    expected = [[one.state_in(context) for one in statements] for context in contexts]
    assert states_by_script(plain, contexts) == expected


def some_statement(rng, domain):
    a, b, *others = rng.permutation(NAMES).tolist()
    sides = tuple(
        tuple(some_region(rng, domain, others) for _ in range(rng.integers(1, 4))) for _ in range(2)
    )
    return Statement(
        kind=KINDS[rng.integers(len(KINDS))], pair=tuple(sorted((a, b))), given=(), confidence=None,
        gate=Gate(*sides) if rng.random() < 0.9 else None, evidence=(), n_rows=10, sentence="",
    )  # fmt: skip


def some_region(rng, domain, names):
    return Region.of(
        domain,
        {
            name: rng.permutation(domain[name].levels)[: rng.integers(1, 5)].tolist()
            for name in names[: rng.integers(0, 4)]
        },
    )
