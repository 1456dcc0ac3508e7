"""How large and how tangled the package may be; `make size` says how it is."""

import pytest

from architecture import size

MEASURED = size.measure()
# What was reached; lower it when a change makes it lower.
LIMITS = {
    "modules with one importer": 93,
    "class names used twice": 31,
    "files with isinstance on structures": 12,
    "import cycles": 6,
    "forbidden words": 415,
}


@pytest.mark.parametrize("what", LIMITS)
def test_no_limit_is_passed(what: str) -> None:
    listed = MEASURED[what]
    assert isinstance(listed, list)
    assert len(listed) <= LIMITS[what], listed
