"""How large and how tangled the package may be; `make size` says how it is."""

import ast

import pytest

from architecture import size

# What was reached; lower it when a change makes it lower.
LIMITS = {
    "modules with one importer": 35,
    "class names used twice": 0,
    "files with isinstance on structures": 2,
    "import cycles": 0,
    "forbidden words": 0,
}


# Every process that collects tests would measure at once.
@pytest.fixture(scope="module")
def measured() -> dict[str, object]:
    found: dict[str, object] = size.measure()
    return found


def test_files_are_chapters(measured: dict[str, object]) -> None:
    n_files = measured[".py files"]
    assert isinstance(n_files, int)
    assert n_files <= 199


@pytest.mark.parametrize("what", LIMITS)
def test_no_limit_is_passed(what: str, measured: dict[str, object]) -> None:
    listed = measured[what]
    assert isinstance(listed, list)
    assert len(listed) <= LIMITS[what], listed


def test_studies_and_benchmarks_use_no_forbidden_word_either() -> None:
    found = {
        f"{path.relative_to(size.ROOT)}: {one}"
        for folder in ("benchmarks", "building", "studies")
        for path in (size.ROOT / folder).rglob("*.py")
        for one in size.identifiers(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        if not {one.strip("_"), *size.parts_of(one)}.isdisjoint(size.PARTS)
    }
    assert found == set()
