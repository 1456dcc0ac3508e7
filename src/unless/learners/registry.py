"""The learners by name, and from a table to a fitted one in one call.

A new learner is one file, one line here, and what ARCHITECTURE.md lists under "To add ...".
"""

import inspect
from typing import Any

from unless.errors import SettingError, UnknownName
from unless.learners import DEFAULT_LEARNER
from unless.learners.base import Estimator, Learner
from unless.learners.chow_liu import ChowLiu
from unless.learners.csgs import CSGS
from unless.learners.csibmap import CSIBMAP
from unless.learners.csmpl import CSMPL
from unless.learners.cspc import CSPC
from unless.learners.dtsl import DTSL
from unless.learners.ggs import GGS
from unless.learners.gsmn import GSMN
from unless.learners.gssl import CSGSSL, GSSL
from unless.learners.ibmap import IBMAPHC

LEARNERS: dict[str, type[Learner]] = {
    "CSGS": CSGS,
    "CSPC": CSPC,
    "CSIBMAP": CSIBMAP,
    "CSGSSL": CSGSSL,
    "GGS": GGS,
    "CSMPL": CSMPL,
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


def learn(
    source: object,
    *,
    target: str | None = None,
    learner: str | type[Estimator] | Estimator | None = None,
    **settings: Any,
) -> Estimator:
    """Read a table, learn from it, and return the fitted estimator.

    Parameters
    ----------
    source
        Whatever `unless.read` understands.
    target
        Keep to this column: `statements_` are those about it, what matters most for it first. What is learned
        is the same.
    learner
        The name of a learner, its class, or an estimator, which is fitted; GGS if None.
    settings
        Those of `unless.read` (`missing=`, `bins=`, `columns=`, ...) and of the learner (`fdr=`, `alpha=`,
        `required_edges=`, ...); `max_memory=` and `show_progress=` go to both.

    Examples
    --------
    >>> import unless
    >>> est = unless.learn(unless.datasets.load_ucb_admissions(), target="Gender")
    >>> [(one.kind, one.pair) for one in est.statements_.findings]
    [('linked', ('Dept', 'Gender')), ('gated', ('Admit', 'Gender'))]
    """
    from unless.data.read import read

    reads = [name for name in inspect.signature(read).parameters if name != "source"]
    estimator = make_learner(learner, settings, reads)
    data = read(source, **{name: value for name, value in settings.items() if name in reads})
    if target is not None:
        # Before the work begins, a name that is not there is refused.
        data.index(target)
    estimator.fit(data)
    estimator.target_ = target
    return estimator


def make_learner(
    learner: str | type[Estimator] | Estimator | None, settings: dict[str, Any], reads: list[str]
) -> Estimator:
    """Make the learner with its settings; refuse those that neither it nor reading knows."""
    if learner is None:
        learner = DEFAULT_LEARNER
    if isinstance(learner, str):
        learner = learner_named(learner)
    kind = learner if isinstance(learner, type) else type(learner)
    if not issubclass(kind, Estimator):
        raise SettingError(
            f"learner={learner!r} is no learner; give a name such as 'GGS', a class or an estimator."
        )
    known = kind.default_settings()
    if unknown := [name for name in settings if name not in reads and name not in known]:
        raise SettingError(
            f"There is no setting {unknown[0]!r}: unless.read has {', '.join(reads)}; "
            f"{kind.__name__} has {', '.join(known)}."
        )
    own = {name: value for name, value in settings.items() if name in known}
    if isinstance(learner, type):
        return kind(**own)
    if given := [name for name in own if name not in reads]:
        raise SettingError(
            f"{given[0]}= is given beside an estimator that has its settings; write {kind.__name__}"
            f"({given[0]}=...)."
        )
    return learner
