import subprocess
import sys
from pathlib import Path

import pytest

import unless as library
from unless.cli import commands
from unless.cli.program import COMMANDS

HEAVY = ("numpy", "duckdb", "numba", "rich", "scipy", "unless.cli.commands")


def test_every_command_is_listed_once():
    files = {path.stem for path in Path(commands.__file__).parent.glob("*.py")} - {"__init__"}
    assert files == set(COMMANDS)


@pytest.mark.parametrize("words", [("--help",), ("-h",), ()])
def test_help_lists_the_commands_and_an_example(unless, words):
    result = unless(*words)
    assert result.exit_code == 0
    assert all(name in result.stdout for name in COMMANDS)
    assert "unless learn table.csv -o model.unless" in result.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_shows_an_example(unless, name):
    result = unless(name, "--help")
    assert result.exit_code == 0
    assert f"unless {name}" in result.stdout.partition("Examples:")[2]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_and_the_command_say_the_same(name):
    from unless.cli import main

    assert main.get_command(None, name).short_help == COMMANDS[name]


def test_version(unless):
    assert unless("--version").stdout == f"unless {library.__version__}\n"


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["learn", "--help"]])
def test_help_loads_nothing_heavy(words):
    heavy = HEAVY if words[0] != "learn" else HEAVY[:-1]
    code = f"""
import sys
from unless.cli import main
try:
    main({words!r})
except SystemExit:
    pass
print([name for name in {heavy!r} if name in sys.modules], file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


def test_the_installed_program_runs(process):
    result = process("--version")
    assert (result.returncode, result.stderr) == (0, "")
