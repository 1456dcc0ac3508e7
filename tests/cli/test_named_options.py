"""The options that a message names must be options of the command that says it."""

import random
import re

import pytest

TROUBLES = [
    ["--as", "side=banana"],
    ["--as", "side=numbr"],
    ["--as", "side=number"],
    ["--as", "side=date"],
    ["--as", "side=count"],
    ["--as", "grade=choices"],
    ["--as", "gone=text"],
    ["--ordered", "grade=low,mid"],
    ["--ordered", "gone"],
    ["--exclude", "gone"],
    ["--exclude", "side,side"],
    ["--exclude", "grade,side,size,day"],
    ["--exclude", "grade,side,size"],
    ["--join", "both=side"],
    ["--join", "both=side,gone"],
    ["--join", "both=side,grade"],
    ["--bins", "side=3"],
    ["--bins", "size=1"],
    ["--rare", "gone=3"],
    ["--max-levels", "1"],
    ["--max-levels", "2", "--missing", "error"],
    ["--sheet", "2"],
    ["--weight-column", "side"],
    ["--cluster-column", "gone"],
    ["--strata-column", "gone"],
    ["--encoding", "utf-99"],
    ["--encoding", "utf-16"],
    ["--delimiter", ";;"],
    ["--delimiter", ";"],
    ["--max-memory", "2 Kb"],
]


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    rng = random.Random(5)
    path = tmp_path_factory.mktemp("troubles") / "t.csv"
    rows = [
        (rng.choice(["low", "mid", "top"]), rng.choice("ab"), rng.randrange(90), f"2020-01-{1 + k % 28:02d}")
        for k in range(120)
    ]
    lines = ["grade,side,size,day", *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


def options_of(command):
    from unless.cli import main

    return {name for one in main.get_command(None, command).params for name in one.opts}


def named_in(message):
    bare = re.sub(r"'[^']*'", "", message)
    return set(re.findall(r"--[a-z][a-z-]*", bare)), re.findall(r"\b[a-z_]+=", bare)


@pytest.mark.parametrize("given", TROUBLES, ids=" ".join)
def test_a_message_names_options_that_the_command_has(unless, small, tmp_path, given):
    learned = tmp_path / "m.unless"
    for command, words in (("learn", [small, "-o", learned]), ("check", [small])):
        result = unless(command, *words, *given)
        if command == "check" and not result.exit_code:
            continue
        assert result.exit_code == 2, result.output
        options, arguments = named_in(result.stderr.replace("--help", ""))
        assert options <= options_of(command)
        assert not arguments
        # What keeps or leaves out a column, or gives its levels, is named as it was given.
        assert options.isdisjoint({"--columns", "--levels"})


def test_commands_that_compare_with_a_model_name_their_own_options(unless, berkeley, berkeley_csv):
    have = options_of("show")
    for given in (
        ["--exclude", "Dept,Gender,Admit"],
        ["--exclude", "Dept,Gender"],
        ["--as", "Dept=number"],
        ["--ordered", "Dept=A,B"],
        ["--max-levels", "2", "--strict", "--exclude", "Gender"],
    ):
        result = unless("show", berkeley, berkeley_csv, *given)
        assert result.exit_code == 2, (given, result.output)
        options, arguments = named_in(result.stderr.replace("--help", ""))
        assert options <= have, result.stderr
        assert not arguments


@pytest.mark.parametrize(
    ("role", "hint"), [("banana", "choose one of category, ordered, number"), ("numbr", "mean 'number'?")]
)
def test_a_role_that_is_none_is_named_with_those_there_are(unless, small, role, hint):
    told = unless("check", small, "--as", f"side={role}").stderr
    assert told.startswith(f"unless: {role!r} is no role that --as can give to column 'side'; ")
    assert hint in told


def test_counts_that_are_no_numbers_are_refused(unless, small):
    result = unless("learn", small, "-o", "m.unless", "--as", "side=count")
    assert result.exit_code == 2
    assert "'side'" in result.stderr
