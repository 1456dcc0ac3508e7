import errno
import os
import signal
import subprocess
import time
import warnings

import pytest

from unless.cli.failures import in_options
from unless.errors import UnlessWarning, interrupt_in


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("drop those rows with missing='drop'.", "drop those rows with --missing 'drop'."),
        (
            "leave it out with columns=, or raise max_memory=.",
            "leave it out with --columns, or raise --max-memory.",
        ),
        ("cut it with bins={'age': 4} or keep it", "cut it with --bins 'age'=4 or keep it"),
        ("keep it with max_levels=300.", "keep it with --max-levels 300."),
        ("pass header=False if", "pass --no-header if"),
        ("required_edges= holds", "--require holds"),
        ("column 'levels=x' is not", "column 'levels=x' is not"),
        ("say with missing_values= what", "say with --missing-value what"),
        ("alpha=2.0 must be", "--alpha 2.0 must be"),
        ("method='gibbs' or method='belief', or", "--method 'gibbs' or --method 'belief', or"),
        ("random_state=1 and evidence=", "--seed 1 and --given"),
    ],
)
def test_arguments_become_options(said, shown):
    assert in_options(said) == shown


USAGE = {
    "no command": (["lern"], "did you mean 'learn'?"),
    "strange command": (["xyzzy"], "see 'unless --help'"),
    "no option": (["learn", "t.csv", "-o", "m", "--qiet"], "--quiet"),
    "no file": (["learn", "-o", "m"], "FILE"),
    "no output": (["learn", "t.csv"], "--output"),
    "no test": (["learn", "t.csv", "-o", "m", "--test", "z"], "pearson"),
    "no learner": (["learn", "t.csv", "-o", "m", "--learner", "z"], "CSGS"),
    "no pair": (["learn", "t.csv", "-o", "m", "--require", "A"], "A:B"),
    "no jobs": (["learn", "t.csv", "-o", "m", "--jobs", "0"], "-1 for all"),
    "no cut": (["learn", "t.csv", "-o", "m", "--bins", "age"], "age=4"),
    "no levels": (["learn", "t.csv", "-o", "m", "--levels", "age"], "NAME=LEVEL"),
    "no rare": (["learn", "t.csv", "-o", "m", "--rare", "some"], "'some'"),
    "two ways to be rare": (["learn", "t.csv", "-o", "m", "--rare", "2", "--rare", "a=3"], "--rare"),
    "two cuts": (["learn", "t.csv", "-o", "m", "--bins", "a=2", "--bins", "a=3"], "'a' twice"),
    "alpha": (["learn", "t.csv", "-o", "m", "--alpha", "2"], "--alpha 2.0"),
    "edge": (["learn", "t.csv", "-o", "m", "--forbid", "a:z"], "'z'"),
    "same file twice": (["learn", "t.csv", "./t.csv", "-o", "m"], "given twice"),
    "output is input": (["learn", "t.csv", "-o", "./t.csv"], "the table itself"),
    "output among inputs": (["learn", "*.csv", "-o", "t.csv"], "the table itself"),
    "no folder": (["learn", "t.csv", "-o", "no/m"], "no folder 'no'"),
    "output is a folder": (["learn", "t.csv", "-o", "."], "is a folder"),
    "output is a device": (["learn", "t.csv", "-o", "/dev/null"], "ordinary file"),
    "no model": (["show", "m.unless"], "No such file"),
    "not a model": (["show", "t.csv"], "not an .unless file"),
    "a folder for a model": (["show", "."], "'.'"),
    "no dataset": (["datasets", "z"], "titanic"),
    "no name": (["datasets", "--rows", "3"], "Name the table"),
    "size of a bundled table": (["datasets", "titanic", "--rows", "3"], "only for csi"),
    "too many variables": (["datasets", "csi", "--variables", "40"], "at most 24"),
    "table as JSON": (["datasets", "titanic", "--json"], "CSV"),
    "csv into no folder": (["datasets", "titanic", "-o", "no/t.csv"], "no folder 'no'"),
}


@pytest.mark.parametrize("case", USAGE)
def test_misuse_is_one_sentence_and_leaves_nothing(unless, tmp_path, monkeypatch, case):
    words, expected = USAGE[case]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("a,b\n1,x\n2,y\n1,x\n")
    result = unless(*words)
    assert result.exit_code == 2
    assert result.stderr.startswith("unless: ")
    assert result.stderr.count("\n") == 1
    assert expected in result.stderr
    assert result.stdout == ""
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


@pytest.mark.parametrize("words", [["learn", "t.csv"], ["datasets", "titanic"]])
def test_a_full_disk_keeps_the_old_file(unless, tmp_path, monkeypatch, words):
    def full(_descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("a,b\n1,x\n2,y\n1,x\n")
    (tmp_path / "out").write_text("old")
    monkeypatch.setattr(os, "fsync", full)
    result = unless(*words, "-o", "out")
    assert (result.exit_code, result.stderr) == (2, "unless: 'out': No space left on device.\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "t.csv"]
    assert (tmp_path / "out").read_text() == "old"


def test_a_forbidden_folder_is_named(unless, monkeypatch, tmp_path):
    def closed(*_arguments):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), "draft")

    monkeypatch.setattr(os, "fsync", closed)
    result = unless("datasets", "titanic", "-o", tmp_path / "t.csv")
    assert (result.exit_code, result.stderr) == (2, f"unless: '{tmp_path}/t.csv': Permission denied.\n")


def test_a_read_only_folder_is_told_before_the_work_begins_and_not_by_the_name_of_a_draft(
    unless, monkeypatch, tmp_path, berkeley_csv
):
    real = os.open

    def closed(path, *more, **others):
        if os.fspath(path).startswith(f"{tmp_path}/"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return real(path, *more, **others)

    def cannot(path, *_, **__):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)

    # As root, no permission is denied.
    monkeypatch.setattr(os, "open", closed)
    monkeypatch.setattr(os, "unlink", cannot)
    monkeypatch.setattr("unless.learners.ggs.GGS.fit", None)
    result = unless("learn", berkeley_csv, "-o", tmp_path / "m.unless")
    assert (result.exit_code, result.stderr) == (2, f"unless: '{tmp_path}/m.unless': Permission denied.\n")


@pytest.fixture
def broken(monkeypatch):
    """Make `unless datasets` fail in a chosen way."""

    def fail_with(failure):
        def fail(*_arguments):
            raise failure

        monkeypatch.setattr("unless.cli.commands.datasets._list", fail)

    return fail_with


def test_a_bug_asks_for_a_report(unless, broken, monkeypatch):
    monkeypatch.delenv("UNLESS_DEBUG", raising=False)
    broken(KeyError("surprise\nline"))
    result = unless("datasets")
    assert result.exit_code == 1
    assert result.stderr.startswith("unless: This is a bug")
    assert "report" in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_bug_shows_its_traceback_on_request(unless, broken, monkeypatch):
    monkeypatch.setenv("UNLESS_DEBUG", "1")
    broken(KeyError("surprise"))
    result = unless("datasets")
    assert result.exit_code == 1
    assert "Traceback" in result.stderr


def test_lack_of_memory_is_no_bug(unless, broken):
    broken(MemoryError())
    result = unless("datasets")
    assert result.exit_code == 2
    assert "not enough memory" in result.stderr


def test_ctrl_c_stops(unless, broken):
    broken(KeyboardInterrupt())
    result = unless("datasets")
    assert result.exit_code == 130
    assert result.stderr.endswith("Stopped.\n")


def test_ctrl_c_says_how_to_go_on(unless, broken):
    broken(KeyboardInterrupt("Stopped; 2 finished shards kept in work_dir='w': go on with resume=True."))
    result = unless("datasets")
    assert result.exit_code == 130
    assert result.stderr.endswith("2 finished shards kept in --work-dir 'w': go on with --resume.\n")


def test_our_own_warning_is_a_sentence_in_options(unless, monkeypatch):
    def warn(*_, **__):
        sentence = "work_dir='w' cannot be written (No space left on device)."
        warnings.warn(sentence, UnlessWarning, stacklevel=1)
        warnings.warn("somebody else's", stacklevel=1)

    monkeypatch.setattr("unless.cli.commands.datasets._list", warn)
    with pytest.warns(UserWarning, match="somebody else's"):
        result = unless("datasets")
    assert result.exit_code == 0
    assert result.stderr == "unless: --work-dir 'w' cannot be written (No space left on device).\n"


HIDING = {
    "a kernel": (SystemError("returned a result with an exception set"), "__cause__"),
    "an archive": (
        ValueError("Can't close the ZIP file while there is an open writing handle on it."),
        "__context__",
    ),
}


@pytest.mark.parametrize(("hidden", "link"), HIDING.values(), ids=HIDING.keys())
def test_ctrl_c_that_something_hid_stops(hidden, link, unless, broken):
    setattr(hidden, link, KeyboardInterrupt())
    broken(hidden)
    result = unless("datasets")
    assert result.exit_code == 130
    assert result.stderr.endswith("Stopped.\n")


def test_what_fails_after_a_ctrl_c_that_was_caught_is_no_ctrl_c():
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt:
        with pytest.raises(ValueError, match="invalid literal") as failed:
            int("something else")
    assert isinstance(failed.value.__context__, KeyboardInterrupt)
    assert interrupt_in(failed.value) is None


def test_ctrl_c_stops_a_process_and_leaves_nothing(program, tmp_path):
    os.mkfifo(tmp_path / "table.csv")
    running = subprocess.Popen(
        [program, "learn", tmp_path / "table.csv", "-o", tmp_path / "m.unless"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell's background job would ignore the signal.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    time.sleep(1.5)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=20)
    assert (running.returncode, out) == (130, "")
    assert err.strip() == "Stopped."
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]


def test_a_reader_that_leaves_is_no_failure(program):
    writer = subprocess.Popen(
        [program, "datasets", "csi", "--rows", "200000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert writer.stdout.readline() == b"X1,X2,X3,X4,X5,W\n"
    writer.stdout.close()
    assert writer.stderr.read() == b""
    writer.stderr.close()
    assert writer.wait(timeout=20) == 141


@pytest.fixture(scope="module")
def learned(program, tmp_path_factory):
    """Give a table, and the model that is learned from it where all streams are open."""
    folder = tmp_path_factory.mktemp("streams")
    table, wanted = folder / "t.csv", folder / "wanted.unless"
    table.write_text("a,b\n" + "x,1\ny,2\n" * 20)
    subprocess.run([program, "learn", table, "-o", wanted], capture_output=True, check=True)
    return table, wanted


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a shell closes the streams")
@pytest.mark.parametrize("closed", ["0<&-", "1>&-", "2>&-", "1>&- 2>&-", "0<&- 1>&- 2>&-", "2>/dev/full"])
def test_a_result_in_a_file_needs_no_streams(program, learned, tmp_path, closed):
    table, wanted = learned
    model = tmp_path / "m.unless"
    command = f"{program} learn {table} -o {model} {closed}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, check=False)
    assert done.returncode == 0
    assert model.read_bytes() == wanted.read_bytes()
    refused = subprocess.run(["sh", "-c", f"{program} learn nowhere.csv -o {model} {closed}"], check=False)
    assert refused.returncode == 2
