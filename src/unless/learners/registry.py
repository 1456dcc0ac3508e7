"""The learners by name; a new learner is one file, its test and one line here."""

from unless.errors import UnknownName
from unless.learners.base import Learner
from unless.learners.chow_liu import ChowLiu
from unless.learners.csgs import CSGS
from unless.learners.cspc import CSPC
from unless.learners.dtsl import DTSL
from unless.learners.ggs import GGS
from unless.learners.gsmn import GSMN
from unless.learners.gssl import GSSL
from unless.learners.ibmap import IBMAPHC

LEARNERS: dict[str, type[Learner]] = {
    "CSGS": CSGS,
    "CSPC": CSPC,
    "GGS": GGS,
    "GSMN": GSMN,
    "IBMAPHC": IBMAPHC,
    "GSSL": GSSL,
    "DTSL": DTSL,
    "ChowLiu": ChowLiu,
}


def learner_named(name: str) -> type[Learner]:
    """Return the learner of this name, in whatever case it is written."""
    for known, learner in LEARNERS.items():
        if known.lower() == name.lower():
            return learner
    raise UnknownName(f"There is no learner {name!r}; there are {', '.join(LEARNERS)}.")
