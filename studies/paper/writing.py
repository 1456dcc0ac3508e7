"""What a study found, as Markdown: claims with their verdicts, interpretations, ratios, numbers."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from studies.paper.claims import REFERENCE_WORDS, Finding, find, headline_findings
from studies.paper.complexity import costs
from studies.paper.interpretations import RULE, Interpretation, holding_nowhere, interpretations
from studies.paper.methods import ASKING, METHODS, REFERENCES, SEARCHES
from studies.paper.plan import Study, Table
from studies.paper.results import Results, mean_and_sd
from studies.paper.variants import HEADLINE, variant_named

# Interpretations listed, from the best down.
N_LISTED = 12


def claims_page(results: Results) -> str:
    """Write the claims, what becomes of those that fail under other variants, and what fits best."""
    study = results.plan.main
    found = headline_findings(results)
    parts = ["## Claims\n", _claims_table(found, study)]
    failed = [one for some in found.values() for one in some if one.verdict == "does not hold"]
    if failed and len(study.variants) > 1:
        parts += ["\n## Under other variants\n", _variants_table(failed, results, study)]
    if every := interpretations(results):
        parts += ["\n## Which interpretation fits best\n", _interpretations_text(every)]
    parts += ["\n## Questions, and the bound\n", _cost_tables(results, study)]
    return "\n".join(parts)


def numbers_page(results: Results) -> str:
    """Write the divergences and the F1 of all methods, and which is best where."""
    large = results.plan.large
    studies = [("", results.plan.main), *([(" of chains and grids", large)] if large else [])]
    parts = []
    for what, study in studies:
        parts += [f"## KL(truth || learned){what}, nats: mean (standard deviation)\n"]
        parts += [_numbers_table(results, study, "kl")]
        parts += [f"\n## F1 of (pair, context){what}, by graphs: mean (standard deviation)\n"]
        parts += [_numbers_table(results, study, "graphs_f1"), ""]
    return "\n".join(parts)


def _claims_table(found: dict[str, list[Finding]], study: Study) -> str:
    first, *_ = found.values()
    judged = [{one.claim.key: _judgement(one) for one in some} for some in found.values()]
    lines = []
    said = ""
    for claim in (finding.claim for finding in first):
        # A sentence that makes several comparisons stands at the first of them.
        words, said = "" if claim.words == said else f'"{claim.words}"', claim.words
        lines.append([words, claim.compares, *(some.get(claim.key, "") for some in judged)])
    n_cells = len(study.n_variables) * len(study.sizes)
    head = ["the paper's words", "compared", *(METHODS[cspc].style.label for cspc in found)]
    return (
        f"Of {n_cells} cells: those for : against, sign test p, settled by their networks, verdict.\n\n"
        + _markdown(head, lines)
    )


def _judgement(finding: Finding) -> str:
    signs = finding.signs
    settled = f"settled {signs.settled_for} : {signs.settled_against}"
    return f"{signs.n_for} : {signs.n_against}, p {_p(signs.p)}, {settled}, **{finding.verdict}**"


def _variants_table(failed: Sequence[Finding], results: Results, study: Study) -> str:
    others = [name for name in study.variants if name != HEADLINE.name]
    lines = []
    for finding in failed:
        tried = [find(finding.claim, results, study, name, finding.cspc) for name in others]
        about = METHODS[finding.cspc].style.label if finding.claim.is_of_cspc else ""
        told = [f"{_short(one.verdict)} {one.signs.n_for} : {one.signs.n_against}" for one in tried]
        lines.append([finding.claim.compares, about, *told])
    key = "\n".join(f"- `{name}`: {variant_named(name).says}" for name in others)
    return f"{key}\n\n{_markdown(['compared', 'CSPC', *others], lines)}"


def _interpretations_text(every: list[Interpretation]) -> str:
    sentences = list(every[0].worths)
    key = "\n".join(f'{number}. "{words}"' for number, words in enumerate(sentences, 1))
    lines = [
        [
            place,
            one.variant,
            METHODS[one.cspc].style.label,
            REFERENCE_WORDS[one.reference],
            *(f"{worth:.2g}" for worth in one.worths.values()),
            f"{sum(one.worths.values()):.3g}",
            f"{one.n_holding} of {len(one.found)}",
        ]
        for place, one in enumerate(every, 1)
        if place <= N_LISTED or one.variant == HEADLINE.name
    ]
    head = ["", "variant", "CSPC", "underlying structure", *map(str, range(1, len(sentences) + 1)), "sum"]
    nowhere = holding_nowhere(every)
    text = "\n".join(f"- {compares}" for compares in nowhere) or "None: each holds under some interpretation."
    return (
        f"{RULE} The best {N_LISTED} of {len(every)}, and those of the headline:\n\n"
        f"{_markdown([*head, 'comparisons that hold'], lines)}\nThe sentences:\n\n{key}\n\n"
        f"Comparisons that hold under no interpretation, not even from some size on:\n\n{text}\n"
    )


def _cost_tables(results: Results, study: Study) -> str:
    if not {"CSGS", "CSPC"} <= set(study.methods):
        return "CSGS and CSPC were not both in the study.\n"
    asking, searches = ([one for one in some if one in study.methods] for some in (ASKING, SEARCHES))
    parts = [_cost_table(results, study, asking)]
    if searches:
        text = (
            "The searches that the paper announces. A question of CSIBMAP is an assertion to test, those "
            "of CSGSSL are the tests of CSGS, and CSMPL looks at scores, for all contexts at once."
        )
        parts += [f"{text}\n", _cost_table(results, study, ["CSGS", *searches])]
    return "\n".join(parts)


def _cost_table(results: Results, study: Study, methods: Sequence[str]) -> str:
    rows = list(costs(results, study, methods))
    lines = []
    for ours, *others in rows:
        line = [
            ours.n_variables,
            f"{ours.size:,}",
            f"{ours.n_within} of {ours.n_networks}",
            f"{ours.worst:.2f}",
        ]
        for one in others:
            worst = f"{one.worst:.2f}" if np.isfinite(one.worst) else ""
            line += [f"{one.questions:.2f}", f"{one.distinct:.2f}", worst]
        lines.append(line)
    head = ["n", "N", "CSGS: networks within m(n(n-1) + nk)", "CSGS: largest share used"]
    for one in rows[0][1:]:
        label = METHODS[one.method].style.label
        head += [f"{label}: questions / CSGS", f"{label}: distinct / CSGS", f"{label}: largest share"]
    return _markdown(head, lines)


def _numbers_table(results: Results, study: Study, field: str) -> str:
    shown = [one for one in METHODS if one in study.methods and (field == "kl" or one not in REFERENCES)]
    lines = list(_number_lines(results, study, field, shown))
    return _markdown(["shape", "n", "N", *(METHODS[one].style.label for one in shown), "best"], lines)


def _number_lines(results: Results, study: Study, field: str, shown: Sequence[str]) -> Iterator[list[Any]]:
    for shape, n, size in product(study.shapes, study.n_variables, study.sizes):
        table = Table(HEADLINE.name, shape, n, 0, size)
        numbers = {one: results.over_networks(table, one, field, study.n_networks) for one in shown}
        means = {one: mean_and_sd(some) for one, some in numbers.items()}
        # References learn nothing, and cannot be best.
        judged = {
            one: mean for one, (mean, _) in means.items() if one not in REFERENCES and np.isfinite(mean)
        }
        choose = min if field == "kl" else max
        best = METHODS[choose(judged, key=judged.__getitem__)].style.label if judged else ""
        yield [shape, n, f"{size:,}", *(_mean(*means[one]) for one in shown), best]


def _mean(mean: float, sd: float) -> str:
    if not np.isfinite(mean):
        return ""
    return f"{mean:.3g} ({sd:.2g})" if np.isfinite(sd) else f"{mean:.3g}"


def _short(verdict: str) -> str:
    return (
        verdict.replace("does not hold", "no")
        .replace("holds from N = ", "from ")
        .replace("holds", "**holds**")
    )


def _p(p: float) -> str:
    return f"{p:.2g}" if p >= 0.001 else f"{p:.0e}"


def _markdown(head: Sequence[str], lines: Iterable[Sequence[Any]]) -> str:
    """Write a Markdown table; bars in texts would end them."""
    rows = [[str(text).replace("|", "\\|") for text in line] for line in [head, *lines]]
    texts = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([texts[0], "|" + "---|" * len(head), *texts[1:]]) + "\n"
