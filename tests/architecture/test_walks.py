"""How many modules a call may run through; `make walks` lists them."""

from architecture.walks import walks

# What was reached; the aims are in walks.py.
REACHED = {"CSGS().fit": 14, "statements_": 16, "report": 14, "CSV to page": 44, "network and query": 18}


def test_no_walk_grows_longer() -> None:
    found = walks()
    for what, entered in found.items():
        print(f"{what}: {len(entered)} modules: {', '.join(entered)}")
    assert {what: len(entered) for what, entered in found.items() if len(entered) > REACHED[what]} == {}
