"""Writes the page of the study: one table for each figure, with counts, shares and 95 % intervals."""

import os
import platform
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from studies.truth.judge import GATE_OUTCOMES, wilson
from studies.truth.run import DESIGN_SEEDS, FDR, KNOWN_RULES, NETWORKS, SEEN_SEEDS

Record = dict[str, Any]
Row = Sequence[object]
# Bounds of the bins of confidence; the last ones are narrow, because most findings are there.
BINS = (0.0, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99, 1.0)
GATE_KINDS = ("gated", "differs")
# The section of `studies.tables` stands between these marks.
TABLES_BEGIN, TABLES_END = "<!-- studies.tables -->", "<!-- end of studies.tables -->"
SYNTHETIC_GATED = ("gated 2-4", "gated 3-8", "gated by two")


def write(records: Iterable[Record], out: Path, *, seed: int, quick: bool = False, n_left: int = 0) -> Path:
    """Write accuracy.md and the reliability diagram into a folder; returns the page."""
    all_records = list(records)
    failed = [one for one in all_records if "error" in one]
    good = [one for one in all_records if "error" not in one]
    judged = [one for one in good if "findings" in one]
    (out / "accuracy").mkdir(parents=True, exist_ok=True)
    (out / "accuracy" / "reliability.svg").write_text(reliability_svg(judged))
    parts = [
        _head(seed, quick, n_left, len(good)),
        _aims_section(judged, good),
        _findings_section(
            "Findings that are true: tables with and without gates", judged, ("pairwise", *SYNTHETIC_GATED)
        ),
        _findings_section("Findings that are true: published networks", judged, NETWORKS),
        _gates_section(judged),
        _invented_section(judged),
        _exact_section(judged),
        _rules_section(good),
        _recall_section(judged),
        _independent_section(judged),
        _confidence_section(judged),
        _comparing_section(good),
        _published_section(good),
        _cost_section(good),
        _others_section(judged, good),
        _failed_section(failed),
    ]
    page = out / "accuracy.md"
    if page.exists():
        parts.append(marked_section(page.read_text()))
    page.write_text("\n\n".join(part for part in parts if part) + "\n")
    return page


def marked_section(text: str) -> str:
    """Return the section that another study wrote into the page, with its marks; nothing if there is none."""
    begin, end = text.find(TABLES_BEGIN), text.find(TABLES_END)
    return text[begin : end + len(TABLES_END)] if 0 <= begin < end else ""


# ---------------------------------------------------------------------- words and numbers


def share(k: int, n: int) -> str:
    """Write a share with its counts and Wilson's 95 % interval."""
    if not n:
        return "none said"
    low, high = wilson(k, n)
    return f"{k:,} of {n:,} = {_short(k / n)} ({_short(low)} to {_short(high)})"


def _short(value: float) -> str:
    text = f"{value:.3f}".removeprefix("0")
    return "1" if value >= 0.9995 else text.rstrip("0").rstrip(".") or "0"


def table(headers: Row, rows: Iterable[Row]) -> str:
    """Return a table of Markdown, its columns aligned."""
    # Sentences may hold labels with a bar or a line break, which would end a field or a row.
    lines = [[str(word).replace("|", "\\|").replace("\n", " ") for word in row] for row in (headers, *rows)]
    widths = [max(len(line[k]) for line in lines) for k in range(len(headers))]
    written = [
        "| " + " | ".join(word.ljust(width) for word, width in zip(line, widths, strict=True)) + " |"
        for line in lines
    ]
    written.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(written)


def _section(title: str, words: str, headers: Row, rows: Iterable[Row]) -> str:
    body = list(rows)
    return f"## {title}\n\n{words}\n\n{table(headers, body)}" if body else ""


def _grouped(
    records: Iterable[Record], key: Callable[[Record], tuple[Any, ...]]
) -> list[tuple[tuple[Any, ...], list[Record]]]:
    groups: dict[tuple[Any, ...], list[Record]] = defaultdict(list)
    for one in records:
        groups[key(one)].append(one)
    return sorted(groups.items(), key=lambda item: tuple((isinstance(part, str), part) for part in item[0]))


def _cell(one: Record) -> tuple[str, str, int]:
    cell = one["cell"]
    return ("" if cell["learner"] == "default" else cell["learner"]), cell["domain"], cell["n"]


def _by_cell(
    records: Iterable[Record], domains: Iterable[str] | None = None
) -> list[tuple[tuple[str, str, int], list[Record]]]:
    wanted = None if domains is None else set(domains)
    chosen = [one for one in records if wanted is None or one["cell"]["domain"] in wanted]
    return [((name or "default", domain, n), group) for (name, domain, n), group in _grouped(chosen, _cell)]


def _is_true(one: Record, said: Sequence[Any]) -> bool:
    """Read the verdict on a finding: on networks by the rule, elsewhere by the definition."""
    return bool(said[3] if one["cell"]["domain"] in NETWORKS else said[2])


def _count(
    group: list[Record], kinds: Sequence[str] | None = None, what: str = "findings"
) -> tuple[int, int]:
    verdicts = [
        _is_true(one, said) for one in group for said in one[what] if kinds is None or said[0] in kinds
    ]
    return sum(verdicts), len(verdicts)


def _recalled(group: list[Record], least: float) -> tuple[int, int]:
    pairs = [(found, total) for one in group for at, found, total in one["recall"] if at == least]
    return sum(found for found, _ in pairs), sum(total for _, total in pairs)


# ---------------------------------------------------------------------- sections


def _head(seed: int, quick: bool, n_left: int, n_cells: int) -> str:
    kind = "This is a quick run: few tables, wide intervals. " if quick else ""
    left = f"Time was up with {n_left:,} cells left to run. " if n_left else ""
    used = (
        f"The figures below are of base seed {seed}, one of those: none of them is to be reported."
        if seed < DESIGN_SEEDS or seed in SEEN_SEEDS
        else f"All figures below are of base seed {seed}."
    )
    return (
        "# How much of what is said is true\n\n"
        "Written by `python -m studies.truth`. Tables are drawn from laws that are known, so that every "
        "sentence can be judged exactly (`studies/truth/judge.py` says how, by kind): a pair is linked in a "
        "row if its law given all other values of the row is no product. A gate is true if the link is "
        "somewhere inside and nowhere outside; on published networks, whose tiny effects no table can show, "
        "if the information outside is at most a tenth of that inside. Columns that an end determines or is "
        "determined by are no condition of a pair.\n\n"
        f"{kind}{left}{n_cells:,} cells, fdr = {FDR}. Shares have counts and Wilson's 95 % interval; "
        "sentences of one table are not independent of each other, so that intervals are a little too "
        "narrow.\n\n"
        f"Seeds: base seeds 0 to {DESIGN_SEEDS - 1} were used while the referee was designed, and base seeds "
        f"{', '.join(map(str, SEEN_SEEDS))} were looked at before its last change; they are not "
        f"reported. {used}\n\n"
        f"Machine: {os.cpu_count()} cores, {platform.system()} {platform.machine()}, "
        f"Python {platform.python_version()}."
    )


def _aims_section(judged: list[Record], good: list[Record]) -> str:
    """Write what was aimed at beside what was reached, by the default learner unless another is named."""
    rows = [
        *_aims_of_findings(judged),
        *_aims_of_gates(judged),
        *_aims_of_links(judged),
        *_aims_of_controls(judged, good),
        *_aims_of_confidence(judged),
        *_aims_of_cost(good),
    ]
    words = (
        "By the default learner where no other is named; the sections below have the figures one by one. "
        "Tables that were refused are not counted here but listed at the end."
    )
    return _section("Aims", words, ("figure", "aim", "reached", "met"), rows)


def _pick(
    records: Iterable[Record],
    domains: Iterable[str],
    rows: Callable[[int], bool] = bool,
    learner: str = "default",
) -> list[Record]:
    wanted = set(domains)
    return [
        one
        for one in records
        if one["cell"]["domain"] in wanted and one["cell"]["learner"] == learner and rows(one["cell"]["n"])
    ]


def _aim(figure: str, counts: tuple[int, int], least: float | None = None, most: float | None = None) -> Row:
    """Return a row of the table of aims: a share that is to be at least, or at most, so large."""
    k, n = counts
    aim = f">= {_short(least)}" if least is not None else f"<= {_short(most or 0.0)}"
    met = n and (k / n >= least if least is not None else k / n <= (most or 0.0))
    return figure, aim, share(k, n) if n else "not run", ("yes" if met else "no") if n else "-"


def _aims_of_findings(judged: list[Record]) -> list[Row]:
    synthetic = ("pairwise", "gated 2-4", "gated 3-8")
    known = ("alarm", "child")
    return [
        _aim(
            "findings true, gated and pairwise, 500 rows",
            _count(_pick(judged, synthetic, lambda n: n == 500)),
            0.97,
        ),
        _aim("the same, 2,000 rows or more", _count(_pick(judged, synthetic, lambda n: n >= 2_000)), 0.98),
        _aim(
            "findings true, alarm and child, 2,000 and 20,000 rows",
            _count(_pick(judged, known, lambda n: n >= 2_000)),
            0.97,
        ),
        _aim("the same, CSGS", _count(_pick(judged, known, lambda n: n >= 2_000, "CSGS")), 0.95),
    ]


def _aims_of_gates(judged: list[Record]) -> list[Row]:
    one_gate, two = ("gated 2-4", "gated 3-8"), ("gated by two",)
    said_by_two = [
        _is_true(one, said)
        for one in _pick(judged, two, lambda n: n == 10_000)
        for said in one["findings"]
        if said[0] == "gated" and said[4] > 1
    ]
    tables = _pick(judged, ("pairwise",), lambda n: 500 <= n <= 10_000)
    invented = sum(any(said[0] == "gated" for said in one["findings"]) for one in tables)
    rows = [
        _aim(
            "`gated` true, synthetic, 500 rows",
            _count(_pick(judged, one_gate, lambda n: n == 500), ("gated",)),
            0.9,
        ),
        _aim(
            "the same, 2,000 rows or more",
            _count(_pick(judged, one_gate, lambda n: n >= 2_000), ("gated",)),
            0.97,
        ),
        _aim("`gated` true, networks", _count(_pick(judged, NETWORKS), ("gated",)), 0.9),
        _aim("pairwise tables with an invented gate, 500 to 10,000 rows", (invented, len(tables)), most=0.01),
    ]
    for n, aims in ((2_000, (0.9, 0.85)), (10_000, (0.98, 0.97))):
        group = _pick(judged, one_gate, n.__eq__)
        for (low, high), aim in zip(((2, 2), (3, 8)), aims, strict=True):
            words = "2 levels" if high == 2 else "3 to 8 levels"
            figure = f"gates of one variable of {words} said exactly, {n:,} rows"
            rows.append(_aim(figure, _exact(group, 1, low, high), aim))
    by_two = _exact(_pick(judged, two, lambda n: n == 10_000), 2)
    rows.append(_aim("gates of two variables said exactly, 10,000 rows", by_two, 0.85))
    rows.append(_aim("true of the gates of two variables said", (sum(said_by_two), len(said_by_two)), 0.9))
    return rows


def _exact(group: list[Record], n_variables: int, low: int = 0, high: int = 99) -> tuple[int, int]:
    """Count the gates of so many variables and levels that were said exactly, and all of them."""
    hows = [
        how
        for one in group
        for size, levels, how in one["gates"]
        if size == n_variables and low <= levels <= high
    ]
    return sum(how == "exact" for how in hows), len(hows)


def _aims_of_links(judged: list[Record]) -> list[Row]:
    rows = []
    for name, least in (("alarm", 46 / 52), ("child", 25 / 30)):
        group = _pick(judged, (name,), lambda n: n == 2_000)
        rows.append(_aim(f"links of {name} found, >= .001 bit, 2,000 rows", _recalled(group, 0.001), least))
    for least_bits, n, least in ((0.01, 2_000, 0.96), (0.001, 20_000, 0.95)):
        group = _pick(judged, ("alarm", "child"), n.__eq__)
        words = f"links of alarm and child found, >= {_short(least_bits)} bit, {n:,} rows"
        rows.append(_aim(words, _recalled(group, least_bits), least))
    return rows


def _aims_of_controls(judged: list[Record], good: list[Record]) -> list[Row]:
    many = _pick(judged, ("independent many",))
    few = _pick(judged, ("independent few",))
    tasks = {
        task: [one for one in good if one["cell"]["task"] == task and one["cell"]["learner"] == "default"]
        for task in ("twice", "one group", "rule", "published")
    }
    determined = sum(any(said[0] == "determined" for said in one["findings"]) for one in few)
    agreed = sum(one["agreed"] for one in tasks["published"])
    against = sum(bool(one["against"]) for one in tasks["published"])
    by_rule, twice, one_group = tasks["rule"], tasks["twice"], tasks["one group"]
    n_stated = sum(one["of"] for one in tasks["published"])
    with_finding = sum(bool(one["findings"]) for one in many)
    said_to_differ, added = sum(one["said"] > 0 for one in twice), sum(one["right"] for one in one_group)
    return [
        _aim("rules of monk3 and car said", (sum(bool(one["exact"]) for one in by_rule), len(by_rule)), 1.0),
        _aim(
            "tables of independent columns of 20 to 50 levels with a finding",
            (with_finding, len(many)),
            most=0.06,
        ),
        _aim("tables of independent columns with `determined`", (determined, len(few)), most=0.0),
        _aim("one law sampled twice, said to differ", (said_to_differ, len(twice)), most=0.05),
        _aim("a link in one group only, said", (added, len(one_group)), 0.8),
        _aim("published statements that `ask` agrees to", (agreed, n_stated), 40 / 42),
        _aim("tables with a finding that contradicts one", (against, len(tasks["published"])), most=0.0),
    ]


def _aims_of_confidence(judged: list[Record]) -> list[Row]:
    rows: list[Row] = []
    for name, kinds in SERIES.items():
        bins = [one for one in binned(judged, kinds, "default") if one[4] >= 100]
        for words, most, chosen in (
            ("below .95", 0.07, [one for one in bins if one[1] <= 0.95]),
            ("above .95", 0.02, [one for one in bins if one[0] >= 0.95]),
        ):
            excess = max((mean - true / n for _, _, mean, true, n in chosen), default=None)
            figure = f"confidence of {name} {words}, less the share true, bins of 100 or more"
            reached = "no such bin" if excess is None else f"{excess:+.3f} at most"
            rows.append(
                (
                    figure,
                    f"<= {_short(most)}",
                    reached,
                    "-" if excess is None else "yes" if excess <= most else "no",
                )
            )
    return rows


def _aims_of_cost(good: list[Record]) -> list[Row]:
    rows: list[Row] = []
    for name, seconds, megabytes in (("alarm", 8, None), ("100 columns", 100, 1_536)):
        for one in good:
            if one["cell"]["task"] == "cost" and one["cell"]["domain"] == name:
                met = one["seconds"] <= seconds and (megabytes is None or one["megabytes"] <= megabytes)
                aim = f"<= {seconds} s" + (f", {megabytes:,} MB" if megabytes else "")
                reached = f"{one['seconds']:.1f} s, {one['megabytes']:,.0f} MB"
                rows.append(
                    (f"CPU, {name} x {one['cell']['n']:,} rows", aim, reached, "yes" if met else "no")
                )
    return rows


def _findings_section(title: str, judged: list[Record], domains: Sequence[str]) -> str:
    rows = [
        (
            domain, f"{n:,}", learner, len(group), share(*_count(group)),
            share(*_recalled(group, 0.001)), share(*_recalled(group, 0.01)),
            f"{median(one['seconds'] for one in group):.2f}",
        )
        for (learner, domain, n), group in _by_cell(judged, domains)
    ]  # fmt: skip
    words = (
        "Found: of the links that carry so much information, I(a; b | all others), those among the findings."
    )
    headers = (
        "domain",
        "rows",
        "learner",
        "tables",
        "findings true",
        "found, >= .001 bit",
        "found, >= .01 bit",
        "CPU s",
    )
    return _section(title, words, headers, rows)


def _gates_section(judged: list[Record]) -> str:
    rows = []
    for (learner, domain, n), group in _by_cell(judged):
        if domain in (*SYNTHETIC_GATED, *NETWORKS) or domain.startswith("rules"):
            counts = [share(*_count(group, (kind,))) for kind in ("gated", "differs", "partly")]
            rows.append((domain, f"{n:,}", learner, *counts))
    words = (
        "`gated` claims absence outside, `differs` another strength, `partly` nothing about the other side."
    )
    headers = ("domain", "rows", "learner", "gated true", "differs true", "partly true")
    return _section("Gates: true of those said", words, headers, rows)


def _invented_section(judged: list[Record]) -> str:
    rows = []
    for (learner, domain, n), group in _by_cell(
        judged, ("pairwise", "independent few", "independent many", "cancer")
    ):
        gated, either = (
            sum(
                any(said[0] in kinds and not _is_true(one, said) for said in one["findings"]) for one in group
            )
            for kinds in (("gated",), ("gated", "differs", "partly"))
        )
        rows.append((domain, f"{n:,}", learner, share(gated, len(group)), share(either, len(group))))
    words = "No pair of these tables is linked in some contexts only."
    headers = (
        "domain",
        "rows",
        "learner",
        "tables with a false `gated`",
        "with a false `gated`, `differs` or `partly`",
    )
    return _section("Invented gates", words, headers, rows)


def _exact_section(judged: list[Record]) -> str:
    rows = []
    for (learner, domain, n), group in _by_cell(judged):
        by_size: dict[str, Counter[str]] = defaultdict(Counter)
        for one in group:
            for n_variables, n_levels, how in one["gates"]:
                size = (
                    "two variables" if n_variables > 1 else "2 levels" if n_levels == 2 else "3 to 8 levels"
                )
                by_size[size][how] += 1
        for size, hows in sorted(by_size.items()):
            told = ", ".join(f"{how} {hows[how]}" for how in GATE_OUTCOMES[1:] if hows[how])
            rows.append((domain, f"{n:,}", learner, size, share(hows["exact"], hows.total()), told))
    words = (
        "Of the true gates, those said exactly: the same pair, the same gating columns, the same levels. The "
        "others: *levels*, the right columns with other levels; *added*, with columns too many; *fewer*, "
        "with one too few; *other*, with other columns; or as another kind, or not at all."
    )
    headers = ("domain", "rows", "learner", "gate", "said exactly", "the others")
    return _section("Gates said exactly", words, headers, rows)


def _rules_section(good: list[Record]) -> str:
    rows = []
    for one in good:
        if one["cell"]["task"] == "rule":
            pair, where = KNOWN_RULES[one["cell"]["domain"]]
            rule = " and ".join(
                f"{name} in {{{', '.join(sorted(levels))}}}" for name, levels in where.items()
            )
            said = "; ".join(one["said"]) or "nothing"
            told = f"yes, {one['exact']}" if one["exact"] else "no"
            rows.append(
                (
                    one["cell"]["domain"],
                    one["cell"]["learner"],
                    f"{' - '.join(pair)} where {rule}",
                    told,
                    said,
                )
            )
    return _section(
        "Known rules",
        "Two tables that follow a rule.",
        ("table", "learner", "rule", "said", "what is said"),
        rows,
    )


def _recall_section(judged: list[Record]) -> str:
    rows = [
        (domain, f"{n:,}", learner, *(share(*_recalled(group, least)) for least in (0.001, 0.003, 0.01)))
        for (learner, domain, n), group in _by_cell(judged, ("alarm", "child"))
    ]
    words = "Links of at least so many bits that are among the findings, over all tables."
    return _section(
        "Links found", words, ("network", "rows", "learner", ">= .001 bit", ">= .003 bit", ">= .01 bit"), rows
    )


def _independent_section(judged: list[Record]) -> str:
    rows = []
    for (learner, domain, n), group in _by_cell(judged, ("independent few", "independent many")):
        any_finding = sum(bool(one["findings"]) for one in group)
        determined = sum(any(said[0] == "determined" for said in one["findings"]) for one in group)
        rows.append(
            (domain, f"{n:,}", learner, share(any_finding, len(group)), share(determined, len(group)))
        )
    words = "8 columns of 2 to 4 levels (few), 5 columns of 20 to 50 levels (many): every finding is false."
    headers = ("columns", "rows", "learner", "tables with a finding", "tables with `determined`")
    return _section("Independent columns", words, headers, rows)


def binned(
    judged: Iterable[Record], kinds: Sequence[str], learner: str
) -> list[tuple[float, float, float, int, int]]:
    """Return for each bin of confidence its bounds, the mean confidence, how many are true, and how many."""
    points = [
        (float(said[1]), _is_true(one, said))
        for one in judged
        if one["cell"]["learner"] == learner
        for said in one["candidates"]
        if said[0] in kinds and said[1] is not None and said[2] is not None
    ]
    bins = []
    for low, high in pairwise(BINS):
        inside = [point for point in points if low <= point[0] < high or point[0] == high == 1.0]
        if inside:
            mean = sum(confidence for confidence, _ in inside) / len(inside)
            bins.append((low, high, mean, sum(true for _, true in inside), len(inside)))
    return bins


SERIES = {"links": ("linked", "partly"), "gates": GATE_KINDS}


def _confidence_section(judged: list[Record]) -> str:
    rows = [
        (
            learner,
            name,
            f"{_short(low)} to {_short(high)}",
            f"{mean:.3f}",
            share(true, n),
            f"{mean - true / n:+.3f}",
        )
        for learner in ("default", "CSGS")
        for name, kinds in SERIES.items()
        for low, high, mean, true, n in binned(judged, kinds, learner)
    ]
    words = (
        "All candidates (fdr = 1) of all tables above, by the confidence they were given. *Excess* is mean "
        "confidence less the share that is true.\n\n"
        "![Confidence against the share that is true](accuracy/reliability.svg)"
    )
    return _section("Confidence", words, ("learner", "of", "confidence", "mean", "true", "excess"), rows)


def _comparing_section(good: list[Record]) -> str:
    rows = []
    for (_, domain, n), group in _by_cell(
        [one for one in good if one["cell"]["task"] in ("twice", "one group")]
    ):
        some = sum(one["said"] > 0 for one in group)
        right, exact = (
            share(sum(one[key] for one in group), len(group)) if domain == "one group" else "-"
            for key in ("right", "exact")
        )
        rows.append((domain, f"{n:,}", share(some, len(group)), right, exact))
    words = (
        "*One law twice*: two samples of one law (`make_csi(6)`), so that every difference is false. *One "
        "group*: the second table has one link more (V of .2 or a little above); *exactly*: as gained, and "
        "nothing else is said. Comparing tests the rows: no learner has a part in it."
    )
    headers = (
        "tables", "rows each", "pairs of tables said to differ", "the added link said", "said exactly",
    )  # fmt: skip
    return _section("Comparing two tables", words, headers, rows)


def _published_section(good: list[Record]) -> str:
    rows = []
    for one in good:
        if one["cell"]["task"] == "published":
            against = "; ".join(one["against"]) or "none"
            first = "<br>".join(one["first"])
            rows.append(
                (
                    one["cell"]["domain"],
                    one["cell"]["learner"],
                    f"{one['agreed']} of {one['of']}",
                    against,
                    first,
                )
            )
    words = "Published by others: how many `ask` agrees to, which gates contradict one, what is said first."
    headers = ("table", "learner", "agreed", "findings that contradict", "first findings")
    return _section("Published statements", words, headers, rows)


def _cost_section(good: list[Record]) -> str:
    rows = [
        (one["cell"]["domain"], f"{one['cell']['n']:,}", f"{one['seconds']:.1f}", f"{one['megabytes']:,.0f}")
        for one in good
        if one["cell"]["task"] == "cost"
    ]
    words = "Learning and statements by default, kernels compiled before, in a process of its own."
    return _section("Cost", words, ("table", "rows", "CPU s", "peak MB"), rows)


def _others_section(judged: list[Record], good: list[Record]) -> str:
    shown = {"pairwise", *SYNTHETIC_GATED, *NETWORKS, "independent few", "independent many"}
    rest = sorted({one["cell"]["domain"] for one in judged} - shown)
    parts = [_findings_section("Findings that are true: other tables", judged, rest)]
    rows: list[Row] = []
    for (learner, domain, n), group in _by_cell(judged):
        found, total = (sum(one["functions"][k] for one in group) for k in (0, 1))
        true, said = _count(group, ("determined",))
        if total or said:
            rows.append((domain, f"{n:,}", learner, share(found, total) if total else "-", share(true, said)))
    words = "Pairs in which one column is a function of the other, and what is said to be one."
    headers: Row = ("domain", "rows", "learner", "found", "`determined` true")
    parts.append(_section("Copies and functions", words, headers, rows))
    rows = []
    for (learner, domain, n), group in _by_cell([one for one in good if one.get("special") is not None]):
        if domain == "missing together" or domain.startswith("confounder"):
            said = sum(bool(one["special"]) for one in group)
            warned = sum(any(warns for _, warns in one["special"]) for one in group)
            rows.append((domain, f"{n:,}", learner, share(said, len(group)), share(warned, said)))
    words = (
        "Two questions skipped together: the link is one of missing values only. A continuous confounder cut "
        "in bins: what is left of it inside a bin links two columns that do not act on each other."
    )
    headers = (
        "domain",
        "rows",
        "learner",
        "tables in which the pair is a finding",
        "of these, the sentence says why",
    )
    parts.append(_section("Missing together, cut confounders", words, headers, rows))
    rows = []
    for (learner, domain, n), group in _by_cell(one for one in judged if one["cell"]["learner"] == "default"):
        total, strict, pooled = (sum(one["bounds"][k] for one in group) for k in range(3))
        if total:
            rows.append((domain, f"{n:,}", learner, share(strict, total), share(pooled, total)))
    words = "Pairs said to be unlinked, whose V is below the bound: in every row, and pooled over rows."
    parts.append(
        _section("Bounds of absence", words, ("domain", "rows", "learner", "in every row", "pooled"), rows)
    )
    return "\n\n".join(part for part in parts if part)


def _failed_section(failed: list[Record]) -> str:
    rows = [
        (domain, f"{n:,}", learner, len(group), group[0]["error"][:200])
        for (learner, domain, n), group in _by_cell(failed)
    ]
    words = "Tables that a learner refused, or could not finish."
    return _section("Failed", words, ("domain", "rows", "learner", "tables", "the first error"), rows)


# ---------------------------------------------------------------------- the diagram

SIDE, MARGIN = 360, 48
COLOURS = {"links": "#1f6f8b", "gates": "#c0562f"}


def reliability_svg(judged: list[Record], learner: str = "default") -> str:
    """Draw the share that is true against mean confidence, with intervals; on the diagonal they agree."""
    size = SIDE + 2 * MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size} {size}" width="{size}" height="{size}" '
        'font-family="sans-serif" font-size="12" role="img" '
        'aria-label="Share of sentences that are true against their confidence">',
        f'<rect width="{size}" height="{size}" fill="#ffffff"/>',
        f'<path d="M{_x(0)} {_y(0)}L{_x(1)} {_y(1)}" stroke="#999999" stroke-dasharray="4 4"/>',
        f'<path d="M{_x(0)} {_y(1)}V{_y(0)}H{_x(1)}" fill="none" stroke="#333333"/>',
    ]
    for tick in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0):
        lines.append(f'<text x="{_x(tick)}" y="{_y(0) + 18}" text-anchor="middle">{tick:g}</text>')
        lines.append(f'<text x="{_x(0) - 8}" y="{_y(tick) + 4}" text-anchor="end">{tick:g}</text>')
    lines.append(f'<text x="{_x(0.5)}" y="{_y(0) + 38}" text-anchor="middle">mean confidence</text>')
    lines.append(
        f'<text x="14" y="{_y(0.5)}" text-anchor="middle" transform="rotate(-90 14 {_y(0.5)})">'
        "share that is true</text>"
    )
    for number, (name, kinds) in enumerate(SERIES.items()):
        colour = COLOURS[name]
        bins = binned(judged, kinds, learner)
        for _, _, mean, true, n in bins:
            low, high = wilson(true, n)
            lines.append(f'<path d="M{_x(mean)} {_y(low)}V{_y(high)}" stroke="{colour}" stroke-width="1.5"/>')
            lines.append(
                f'<circle cx="{_x(mean)}" cy="{_y(true / n)}" r="4" fill="{colour}">'
                f"<title>{name}: {true} of {n} true, mean confidence {mean:.3f}</title></circle>"
            )
        lines.append(f'<circle cx="{_x(0.06)}" cy="{_y(0.95 - 0.06 * number)}" r="4" fill="{colour}"/>')
        total = sum(one[4] for one in bins)
        lines.append(
            f'<text x="{_x(0.09)}" y="{_y(0.95 - 0.06 * number) + 4}" fill="{colour}">'
            f"{name} ({total:,} candidates)</text>"
        )
    return "\n".join([*lines, "</svg>"]) + "\n"


def _x(value: float) -> float:
    return round(MARGIN + value * SIDE, 1)


def _y(value: float) -> float:
    return round(MARGIN + (1 - value) * SIDE, 1)
