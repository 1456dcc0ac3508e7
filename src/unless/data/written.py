"""Numbers as people write them: with a currency, a percent sign, a unit, separators, or as limits (<5)."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from math import inf, nextafter

from unless.data.sources.session import quoted

# So large a share of the cells must be numbers that are written alike; the others are missing.
MOST_CELLS = 0.95
# So many of very many texts are looked at first; if most of these are no numbers, neither are the others.
SOME = 200
# The share by which a value written with < is below its limit, and one with > above it.
STEP = 1e-9

# Numbers without a unit.
PLAIN = "1,234.5"

_BLANKS = " \u00a0\u202f"
_MINUS, _QUOTE = "\u2212", "\u2019"
_CURRENCIES = r"[$€£¥₹]|USD|EUR|GBP|CHF|CAD|AUD|JPY|INR|Rs\.?|kr"
_LIMIT = rf"(?:[<>]=?|[≤≥])[{_BLANKS}]?"
# Anything that may be a number, whatever its separators mean.
_ANY = re.compile(
    rf"(?P<limit>{_LIMIT})?[-+{_MINUS}(]?[{_BLANKS}]?(?P<before>{_CURRENCIES})?[{_BLANKS}]?[-+{_MINUS}]?"
    rf"(?P<number>[0-9.,](?:[0-9.,'{_QUOTE}{_BLANKS}]*[0-9.,])?)(?:[eE][-+]?[0-9]{{1,3}})?"
    rf"(?P<gap>[{_BLANKS}]?)(?P<after>%|‰|{_CURRENCIES}|[A-Za-zµ°][A-Za-z0-9µ°/²³]{{0,6}})?\)?"
)
_PLAIN_NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
# The text of a convention: what stands before and after, and which marks part thousands and decimals.
_CONVENTION = re.compile(r"(?P<before>.*?)1(?P<thousands>[.,])234(?P<decimal>[.,])5(?P<after>.*)", re.DOTALL)


@dataclass(frozen=True)
class Numerals:
    """How the numbers of a column of text are written, and what in it is no number.

    `written` is the number 1234.5 in this way, such as "$1,234.5" or "1.234,5 €". `strays` are the other
    texts and their cells; `limits` the texts such as "<5". Numbers are `is_plain` without unit and separator.
    """

    written: str
    strays: Mapping[str, int] = field(default_factory=dict)
    limits: tuple[str, ...] = ()
    is_plain: bool = False


@lru_cache(maxsize=256)
def _pattern(written: str) -> str:
    """Return the pattern of all numbers that are written in this way; its first group is the digits."""
    found = _CONVENTION.fullmatch(written)
    if found is None:
        return r"(\b\B)"
    thousands, decimal = re.escape(found["thousands"]), re.escape(found["decimal"])
    before, after = found["before"].strip(), found["after"].strip()
    start = rf"(?:{re.escape(before)})[{_BLANKS}]?" if before else ""
    end = rf"[{_BLANKS}]?(?:{re.escape(after.removesuffix('s'))})s?" if after[-1:].isalpha() else ""
    end = end or (rf"[{_BLANKS}]?{re.escape(after)}" if after else "")
    whole = rf"[1-9][0-9]{{0,2}}(?:[{thousands}'{_QUOTE}{_BLANKS}][0-9]{{3}})+|[0-9]+"
    digits = rf"(?:{whole})(?:{decimal}[0-9]*)?|{decimal}[0-9]+"
    return (
        rf"(?:{_LIMIT})?[-+{_MINUS}(]?[{_BLANKS}]?{start}[-+{_MINUS}]?"
        rf"((?:{digits})(?:[eE][-+]?[0-9]{{1,3}})?){end}\)?"
    )


def parse_number(text: str, written: str) -> float | None:
    """Read a number that is written in this way; None if it is none.

    >>> [parse_number(text, "$1,234.5") for text in ("$1,999.01", "-$5", "($7.50)", "5 EUR")]
    [1999.01, -5.0, -7.5, None]
    >>> parse_number("1.234,56 €", "1.234,5 €")
    1234.56
    """
    found = re.fullmatch(_pattern(written), text.strip())
    if found is None:
        return None
    decimal = _decimal(written)
    digits = re.sub(rf"[^0-9eE+{re.escape(decimal)}-]", "", found[1]).replace(decimal, ".")
    number = float(digits)
    if re.match(rf"[^0-9]*[-{_MINUS}(]", text.strip()):
        number = -number
    step = max(abs(number), STEP) * STEP
    return number - step * text.strip().startswith(("<", "≤")) + step * text.strip().startswith((">", "≥"))


def number_in_sql(text: str, written: str) -> str:
    """Write in SQL what `parse_number` gives, null where a text is no number."""
    decimal = _decimal(written)
    value, pattern = f"trim({text})", quoted(_pattern(written))
    digits = f"regexp_extract({value}, {quoted('^' + _pattern(written) + '$')}, 1)"
    kept = f"regexp_replace({digits}, {quoted(f'[^0-9eE+{decimal}-]')}, '', 'g')"
    number = f"try_cast(replace({kept}, {quoted(decimal)}, '.') as DOUBLE)"
    number = f"({number} * case when regexp_matches({value}, '^[^0-9]*[-{_MINUS}(]') then -1 else 1 end)"
    side = f"case when {value}[1] in ('<', '≤') then -1 when {value}[1] in ('>', '≥') then 1 else 0 end"
    limited = f"({number} + greatest(abs({number}), {STEP!r}) * {STEP!r} * ({side}))"
    return f"(case when regexp_full_match({value}, {pattern}) then {limited} end)"


def _decimal(written: str) -> str:
    found = _CONVENTION.fullmatch(written)
    return "." if found is None else found["decimal"]


def signature_sql(text: str) -> str:
    """Write a text in SQL with all digits alike, so that few differ; a single zero before a mark stays."""
    zeros = f"regexp_replace({text}, '(^|[^0-9])0([.,])', '\\1Z\\2')"
    return f"replace(regexp_replace({zeros}, '[0-9]', '9', 'g'), 'Z', '0')"


def might_be_number_sql(text: str) -> str:
    """Write in SQL whether a text may be a number, whatever its separators mean."""
    pattern = quoted(_without_names(_ANY.pattern))
    # No number begins with a small letter but k, of kr; a pattern takes ten times as long to tell.
    may = f"{text} < 'a' or ({text} >= 'k' and {text} < 'l') or {text} >= '~'"
    return f"case when {may} then regexp_full_match(trim({text}), {pattern}) else false end"


def _without_names(pattern: str) -> str:
    return re.sub(r"\(\?P<\w+>", "(?:", pattern)


def find_numerals(counts: Mapping[str, int]) -> Numerals | None:
    """Find the one way in which nearly all of these texts, each in so many cells, are numbers.

    Where 1,234 may be both, the comma parts thousands.
    """
    total = sum(counts.values())
    if len(counts) > 10 * SOME:
        some = sorted(counts)[:: len(counts) // SOME]
        if 2 * sum(_ANY.fullmatch(text.strip()) is not None for text in some) < len(some):
            return None
    units: Counter[tuple[str, str]] = Counter()
    for text, n in counts.items():
        if found := _ANY.fullmatch(text.strip()):
            gap = " " if found["gap"] else ""
            units[found["before"] or "", f"{gap}{found['after']}" if found["after"] else ""] += n
    if not units or sum(units.values()) < MOST_CELLS * total:
        return None
    # "5 kg" and "5kg" are one unit, and so are "1 day" and "2 days".
    merged: Counter[tuple[str, str]] = Counter()
    for (before, after), n in units.items():
        merged[before, after.strip().removesuffix("s")] += n
    (before, plain), _ = merged.most_common(1)[0]
    spelled = [pair for pair in units if (pair[0], pair[1].strip().removesuffix("s")) == (before, plain)]
    after = max(spelled, key=lambda pair: (units[pair], pair))[1]
    best: Numerals | None = None
    least = MOST_CELLS * total
    for marks in ((",", "."), (".", ",")):
        written = f"{before}1{marks[0]}234{marks[1]}5{after}"
        strays = {text: n for text, n in counts.items() if parse_number(text, written) is None}
        n_fit = total - sum(strays.values())
        if n_fit >= least and (best is None or n_fit > total - sum(best.strays.values())):
            limits = tuple(sorted(text for text in counts if text not in strays and _is_limit(text)))
            others = [text for text in counts if text not in strays and not _is_limit(text)]
            is_plain = written == PLAIN and all(map(_PLAIN_NUMBER.fullmatch, map(str.strip, others)))
            best = Numerals(written, dict(sorted(strays.items())), limits, is_plain)
    return best


def _is_limit(text: str) -> bool:
    return text.strip().startswith(("<", ">", "≤", "≥"))


def snapped(cuts: Iterable[float], limits: Iterable[tuple[float, bool]]) -> tuple[float, ...]:
    """Move cuts beside a limit to the limit itself; each limit comes with whether its values are above."""
    kept = set(cuts)
    for number, is_above in limits:
        near = 3 * max(abs(number), STEP) * STEP
        beside = {cut for cut in kept if (0 < cut - number <= near if is_above else 0 < number - cut <= near)}
        if beside:
            kept = (kept - beside) | {nextafter(number, inf) if is_above else number}
    return tuple(sorted(kept))


def limit_of(text: str, written: str) -> tuple[float, bool]:
    """Return the number in a text such as "<5", and whether values are above it."""
    bare = re.sub(rf"^{_LIMIT}", "", text.strip())
    return parse_number(bare, written) or 0.0, text.strip().startswith((">", "≥"))
