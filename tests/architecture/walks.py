"""The modules of the package that a call runs through, in the order in which it enters them: `make walks`."""

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import unless
from unless.datasets import load_titanic
from unless.kernels import compiling

PACKAGE = str(Path(unless.__file__).parent)
# The largest number of modules that each call may run through.
LIMITS = {"CSGS().fit": 16, "statements_": 16, "report": 20, "CSV to page": 45, "network and query": 24}


def modules_of(call: Callable[[], object]) -> list[str]:
    """Return the modules of the package in which a Python frame ran during a call, in order of entry.

    numba reports calls of machine code, too, by frames that no other frame has called; these do not count.
    """
    entered: dict[str, None] = {}

    def notice(frame: FrameType, event: str, _argument: Any) -> None:
        name = frame.f_code.co_filename
        is_module = frame.f_code.co_name == "<module>"
        if event == "call" and frame.f_back is not None and name.startswith(PACKAGE) and not is_module:
            entered[name[len(PACKAGE) + 1 :]] = None

    sys.setprofile(notice)
    try:
        call()
    finally:
        sys.setprofile(None)
    return list(entered)


def walks() -> dict[str, list[str]]:
    """Walk through the calls that users make most, once all modules have been imported."""
    # Plain Python would enter the kernels, too.
    compiling.FORCED = "numba"
    data = load_titanic()
    rows = [
        ",".join(variable.levels[code] for variable, code in zip(data.domain.variables, row, strict=True))
        for row, count in zip(data.rows.tolist(), data.counts.tolist(), strict=True)
        for _ in range(count)
    ]
    with tempfile.TemporaryDirectory() as folder:
        table, page = Path(folder) / "titanic.csv", Path(folder) / "page.html"
        table.write_text("\n".join([",".join(data.names), *rows]))

        def fit() -> unless.CSGS:
            return unless.CSGS().fit(data)

        def ask(learner: unless.CSGS) -> object:
            return learner.network(data).query(["Survived"], evidence={"Sex": "Male"})

        # Once without a profile: imports are not part of a walk, and the first call of each is special.
        unless.learn(table).report(page)
        ask(fit())
        learner = fit()
        learner.report(page)
        learner = fit()
        return {
            "CSGS().fit": modules_of(fit),
            "statements_": modules_of(lambda: learner.statements_),
            "report": modules_of(lambda: learner.report(page)),
            "CSV to page": modules_of(lambda: unless.learn(table).report(page)),
            "network and query": modules_of(lambda: ask(learner)),
        }


if __name__ == "__main__":
    for what, entered in walks().items():
        print(f"{what}: {len(entered)} modules (at most {LIMITS[what]})")
        print("\n".join(f"    {name}" for name in entered))
