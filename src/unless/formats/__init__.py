"""Files that models are kept in and exchanged through. Imports weights and below, never learners.

A new format is one file here with its reader and writer, a line of `FORMATS`, one each of `READERS` and
`WRITERS` in `catalogue.py`, and its ending in the texts that users read, of which
`tests/formats/test_catalogue.py` names those that were forgotten.
"""

# The endings of files, each with how a stream begins that holds such a file; one without is told by its words
# (`Taken.ending` in `text.py`).
FORMATS = {
    ".unless": (b"PK\3\4",),
    ".mn": (),
    ".uai": (b"MARKOV", b"BAYES"),
    ".bif": (),
    ".json": (b"{",),
    ".graphml": (b"<",),
}
# These hold a graph and no weights.
WITHOUT_WEIGHTS = (".graphml",)
# These have no place for names, which lie beside, in a file that ends in .names.json.
WITHOUT_NAMES = (".mn", ".uai")
