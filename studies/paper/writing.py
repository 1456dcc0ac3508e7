"""What a run found, as Markdown: claims with their verdicts, readings, ratios, numbers."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from studies.paper.claims import Claim, Finding, findings, readings_of
from studies.paper.complexity import costs
from studies.paper.plan import Site, Study
from studies.paper.readings import CONTESTANTS, HEADLINE, reading_named
from studies.paper.results import Results, mean_and_sd


def claims_page(results: Results) -> str:
    """Write the table of claims, and for those that fail, what becomes of them under other readings."""
    study = results.plan.main
    found = findings(results)
    parts = ["## Claims\n", _claims_table(found, study)]
    failed = [finding.claim for finding in found if finding.verdict == "does not hold"]
    if failed and len(study.readings) > 1:
        parts += ["\n## Under other readings\n", _readings_table(failed, results, study)]
    parts += ["\n## Questions: CSPC / CSGS, and the bound\n", _cost_table(results, study)]
    return "\n".join(parts)


def numbers_page(results: Results) -> str:
    """Write the divergences of figure 1 as a table: mean (standard deviation) over networks."""
    study = results.plan.main
    shown = [one for one in CONTESTANTS if one in study.contestants]
    lines = [
        [n, f"{size:,}", *(_mean(results, study, n, size, one) for one in shown)]
        for n in study.n_variables
        for size in study.sizes
    ]
    return "## KL(truth || learned), nats: mean (standard deviation)\n\n" + _table(["n", "N", *shown], lines)


def _claims_table(found: list[Finding], study: Study) -> str:
    n_cells = len(study.n_variables) * len(study.sizes)
    lines = []
    said = ""
    for finding in found:
        # A sentence that makes several comparisons stands at the first of them.
        words, said = "" if finding.claim.words == said else finding.claim.words, finding.claim.words
        tally = finding.tally
        lines.append(
            [
                f'"{words}"' if words else "",
                finding.claim.compares,
                f"{tally.n_for} : {tally.n_against}",
                _p(tally.p),
                f"{tally.settled_for} : {tally.settled_against}",
                f"**{finding.verdict}**",
            ]
        )
    head = [
        "the paper's words",
        "compared",
        f"of {n_cells} cells, for : against",
        "sign test p",
        "settled",
        "verdict",
    ]
    return _table(head, lines)


def _readings_table(claims: Iterable[Claim], results: Results, study: Study) -> str:
    others = [name for name in study.readings if name != HEADLINE.name]
    lines = []
    for claim in claims:
        told = [
            f"{_short(one.verdict)} {one.tally.n_for} : {one.tally.n_against}"
            for one in readings_of(claim, results, study)
        ]
        lines.append([claim.compares, *told])
    key = "\n".join(f"- `{name}`: {reading_named(name).says}" for name in others)
    return f"{key}\n\n{_table(['compared', *others], lines)}"


def _cost_table(results: Results, study: Study) -> str:
    if not {"CSGS", "CSPC"} <= set(study.contestants):
        return "CSGS and CSPC were not both in the run.\n"
    lines = [
        [
            one.n_variables,
            f"{one.size:,}",
            f"{one.questions:.2f}",
            f"{one.distinct:.2f}",
            f"{one.n_within} of {one.n_networks}",
            f"{one.worst:.2f}",
        ]
        for one in costs(results, study)
    ]
    head = ["n", "N", "questions", "distinct tables", "networks within m(n(n-1) + nk)", "largest share used"]
    return _table(head, lines)


def _mean(results: Results, study: Study, n: int, size: int, contestant: str) -> str:
    site = Site(HEADLINE.name, "complete", n, 0, size)
    mean, sd = mean_and_sd(results.over_networks(site, contestant, "kl", study.n_networks))
    return f"{mean:.3g} ({sd:.2g})" if np.isfinite(sd) else f"{mean:.3g}"


def _short(verdict: str) -> str:
    return (
        verdict.replace("does not hold", "no")
        .replace("holds from N = ", "from ")
        .replace("holds", "**holds**")
    )


def _p(p: float) -> str:
    return f"{p:.2g}" if p >= 0.001 else f"{p:.0e}"


def _table(head: Sequence[str], lines: Iterable[Sequence[Any]]) -> str:
    """Write a Markdown table; bars in cells would end them."""
    rows = [[str(cell).replace("|", "\\|") for cell in line] for line in [head, *lines]]
    texts = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([texts[0], "|" + "---|" * len(head), *texts[1:]]) + "\n"
