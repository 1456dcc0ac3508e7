"""How many modules a call may run through; `make walks` lists them."""

from architecture.walks import walks

# What was reached. The aims are in walks.py; the page's own walk has a network's in it.
REACHED = {"CSGS().fit": 15, "statements_": 21, "report": 31, "CSV to page": 60, "network and query": 21}


def test_no_walk_grows_longer() -> None:
    found = walks()
    for what, entered in found.items():
        print(f"{what}: {len(entered)} modules: {', '.join(entered)}")
    assert {what: len(entered) for what, entered in found.items() if len(entered) > REACHED[what]} == {}
