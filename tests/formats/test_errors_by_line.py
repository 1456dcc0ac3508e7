"""A fault at any place of a file is told in one sentence with the line it is in."""

import re

import pytest

from benchmarks.mutants import SEEDS, read
from unless.errors import FileFormatError

TOKEN = re.compile(r'"[^"]*"|[\w.+-]+|[^\s\w]')
TEXTS = {ending: content.decode() for ending, content in SEEDS.items()}
# Where anything may stand: names of things nobody asks for, remarks, values of another program.
FREE = {
    ".mn": {"a", "comment"},
    ".uai": set(),
    ".bif": {"asked", "by", "hand", "author", "nobody", "position", "=", "small", "one", "remark"},
    ".json": set(),
    ".graphml": {"key", "for", "attr", "type"},
    ".data": set(),
    ".schema": set(),
}


def fault_of(path, text):
    """Read a text; return None if it could be read, else the line that is named."""
    path.write_bytes(text.encode())
    try:
        read(path)
    except FileFormatError as error:
        found = re.fullmatch(r"'.*x\.\w+', line (\d+): .+\.", str(error), re.DOTALL)
        return int(found[1]) if found else pytest.fail(str(error))
    return None


def tokens_of(ending):
    return [match for match in TOKEN.finditer(TEXTS[ending]) if match[0].strip('"') not in FREE[ending]]


@pytest.mark.parametrize("change", ["delete", "double", "alter"])
@pytest.mark.parametrize("ending", SEEDS)
def test_a_fault_in_any_place_has_a_line(ending, change, tmp_path):
    text, n_faults, n_near, n_tokens = TEXTS[ending], 0, 0, 0
    for match in tokens_of(ending):
        new = {"delete": "", "double": f"{match[0]} {match[0]}", "alter": "@?"}[change]
        line = fault_of(tmp_path / f"x{ending}", text[: match.start()] + new + text[match.end() :])
        n_tokens += 1
        if line is not None:
            n_faults += 1
            n_near += 0 <= line - text.count("\n", 0, match.start()) - 1 <= 1
            assert 1 <= line <= text.count("\n") + 1
    # A label more or fewer can leave another good file, and a number fewer shows where the numbers end.
    assert n_faults >= (0.9 if change == "alter" else 0.6) * n_tokens
    assert n_near >= (0.9 if change == "alter" else 0.4) * n_faults


@pytest.mark.parametrize("ending", [".mn", ".uai", ".bif", ".json", ".graphml"])
def test_every_file_cut_short_is_noticed(ending, tmp_path):
    text = TEXTS[ending]
    whole = len(text.rstrip())
    read_anyway = [end for end in range(whole) if fault_of(tmp_path / f"x{ending}", text[:end]) is None]
    assert read_anyway == []
