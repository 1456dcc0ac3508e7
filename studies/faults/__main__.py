"""`python -m studies.faults`: kills, full disks, hostile files and chains that do not mix, into a page.

The whole run takes about 45 minutes on two cores, `--quick` a few. A run that was stopped goes on when the
same command is given again. Figures go to docs/reliability.md, those of a quick run to build/faults.
"""

import argparse
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from studies.faults import gibbs, hostile, kills, surroundings

SEED = 27_182
# A number, what was found, what happens now, and the tests that failed before.
FAULTS = [
    (
        1,
        "A spreadsheet of 5 KB asks for 550 GB, or unpacks to a text of 1 GB",
        "spreadsheets are opened in a child process with bounds on memory, time, bytes and cells",
        "tests/data/sources/test_hostile.py -k 'hostile_file or spreadsheet or cell'",
    ),
    (
        2,
        "Gibbs sampling is sure and wrong where a law has several modes",
        "tempered chains join modes; chains that do not mix are an error",
        "tests/inference/test_gibbs.py -k 'mode or slowly'",
    ),
    (
        3,
        "A lock in a shared work_dir is opened through links and truncated",
        "locks and files of a work_dir are never opened through links",
        "tests/learners/test_work_dir.py -k 'lock or links'",
    ),
    (
        4,
        "A private model file becomes readable by all when it is written again",
        "the mode of a replaced file is kept; new files that hold rows are private",
        "tests/runtime/test_files.py -k 'permissions or private or owner'",
    ),
    (
        5,
        "SIGTERM leaves drafts and unpacked rows, and no later run sweeps them",
        "SIGTERM and SIGHUP clean up as Ctrl-C does; the next run sweeps what the dead left",
        "tests/cli/test_stopping.py",
    ),
    (
        6,
        "Archives are unpacked without bound",
        "bytes, time and memory of unpacking are bounded",
        "tests/data/sources/test_hostile.py -k 'archive or unpacks'",
    ),
    (
        7,
        "A pipe loses its first rows, a FIFO hangs",
        "what is no ordinary file is spooled once",
        "tests/data/sources/test_streams.py; tests/cli/test_streams.py",
    ),
    (
        8,
        "Wrong reasons: full disk, read-only folder, huge cell, closed streams",
        "each has its own sentence, and closed streams do not stop the work",
        "tests/cli/test_failures.py -k streams; tests/data/sources/test_hostile.py -k full_disk; "
        "tests/runtime/test_files.py -k hides_no_reason; tests/data/sources/test_delimited.py -k too_long",
    ),
    (
        9,
        "--json prints characters that a terminal obeys",
        "they are escaped",
        "tests/cli/test_output.py -k json",
    ),
    (
        10,
        "encoding='zip' is a LookupError; a file removed while it is read a FileNotFoundError",
        "one sentence each",
        "tests/data/sources/test_delimited.py -k encoding; tests/data/sources/test_streams.py -k removed",
    ),
    (
        11,
        "power_of(1, 10, 1e-20, .3) is 0",
        "a small power keeps its digits",
        "tests/independence/test_power.py -k small",
    ),
    (
        12,
        "RLIMIT_AS is not seen by the default max_memory",
        "limits of the process and of control groups are seen",
        "tests/runtime/test_memory.py -k 'limits or running or control'",
    ),
    (
        13,
        "Garbage around an .unless file is accepted; a table cut while it is read is shorter, without a note",
        "both are refused",
        "tests/formats/test_record.py -k not_its_own; tests/data/sources/test_streams.py -k changes",
    ),
]
Study = Callable[[Path, int, bool, float], str]
# Each with the minutes it may take: whole, and quick.
STUDIES: list[tuple[str, Study, float, float]] = [
    ("kills", kills.study, 20, 3),
    ("surroundings", surroundings.study, 10, 3),
    ("hostile", hostile.study, 10, 4),
    ("gibbs", gibbs.study, 25, 3),
]


def main(words: list[str] | None = None) -> int:
    """Run what is missing, then write the page."""
    parser = argparse.ArgumentParser(prog="python -m studies.faults", description=__doc__)
    parser.add_argument("--seed", type=int, default=SEED, help="base seed (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="few cases, into build/faults")
    parser.add_argument("--only", help="studies with one of these names: kills,gibbs")
    options = parser.parse_args(words)
    root = Path("build/faults")
    folder = root / (f"{options.seed}-quick" if options.quick else str(options.seed))
    sections = [_head(options.seed, options.quick), _faults()]
    for name, study, whole, quick in STUDIES:
        if options.only is None or name in options.only.split(","):
            (folder / name).mkdir(parents=True, exist_ok=True)
            sys.stderr.write(f"{name} ...\n")
            minutes = quick if options.quick else whole
            sections.append(study(folder / name, options.seed, options.quick, minutes))
    is_whole = not options.quick and options.only is None
    page = Path("docs/reliability.md") if is_whole else root / "reliability.md"
    page.write_text("\n\n".join(one.strip() for one in sections) + "\n", encoding="utf-8")
    sys.stdout.write(f"{page}\n")
    return 0


def _head(seed: int, quick: bool) -> str:
    command = f"make faults{f' SEED={seed}' if seed != SEED else ''}{' QUICK=1' if quick else ''}"
    return (
        "# Reliability\n\n"
        "What happens when a file is hostile, a disk is full, a process is killed or chains do not mix. Made "
        f"by `{command}` (base seed {seed:,}; designs were chosen on base seeds below 1,000). A share comes "
        "with its counts and a 95 % interval."
    )


def _faults() -> str:
    """Run the tests of every fault and tell its state."""
    lines = [
        "## Faults of 0.1.0",
        "",
        "Found by attack; each test failed before the fault was mended.",
        "",
        "| | fault | now | command | state |",
        "|---|---|---|---|---|",
    ]
    for number, fault, now, tests in FAULTS:
        commands = [f"pytest {one.strip()}" for one in tests.split(";")]
        states = {_state(one) for one in tests.split(";")}
        said = " ".join(f"`{one}`" for one in commands)
        lines.append(f"| {number} | {fault} | {now} | {said} | {' and '.join(sorted(states))} |")
    return "\n".join(lines)


def _state(tests: str) -> str:
    from shlex import split

    command = [sys.executable, "-m", "pytest", "-q", *split(tests)]
    done = subprocess.run(command, capture_output=True, check=False)  # noqa: S603 (our own tests)
    return {0: "mended", 5: "no test"}.get(done.returncode, "fails")


if __name__ == "__main__":
    sys.exit(main())
