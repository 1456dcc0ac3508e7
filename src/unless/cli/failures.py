"""Whatever goes wrong becomes one sentence on stderr and an exit code."""

import os
import re
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import click

from unless.data.showing import visible
from unless.errors import UnlessError, UnlessWarning, interrupt_in
from unless.runtime.memory import is_out_of_memory, out_of_memory

BUG, REFUSED, STOPPED, UNREAD = 1, 2, 130, 141

# The library names arguments, the command line options; only these are spelled differently.
_OPTIONS = {
    "required_edges": "--require",
    "forbidden_edges": "--forbid",
    "missing_values": "--missing-value",
    "n_jobs": "--jobs",
    "header": "--no-header",
    "evidence": "--given",
    "random_state": "--seed",
    "roles": "--as",
}
_ARGUMENTS = (
    "alpha|bins|blankets|cluster_column|columns|count_column|delimiter|effect|encoding|evidence|exclude|fdr|forbidden_edges|"
    "header|join|levels|max_blanket|max_levels|max_memory|method|missing|missing_values|n_jobs|order|ordered|plan|"
    "random_state|rare|required_edges|resume|roles|rule|sheet|strata_column|strict|test|undecided|"
    "weight_column|work_dir"
)
# Quoted text is matched first, and left alone: a column may be called "levels=".
_MENTION = re.compile(
    r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
    r"|(?<![\w-])(?P<name>"
    + _ARGUMENTS
    + r")=(?:\{(?P<column>'[^']*'): (?P<spec>[^}]*)\}|False|True|(?P<value>(?=['\"\w\[(])))?"
)


def print_error(sentence: str) -> None:
    """Print a sentence on stderr; where that is closed, the exit code must do."""
    with suppress(OSError):
        click.echo(sentence, err=True)


def answer(failure: BaseException) -> int:
    """Say what happened and return the exit code."""
    failure = interrupt_in(failure) or failure
    if isinstance(failure, KeyboardInterrupt | click.Abort):
        # Learners say what they kept and how to go on; click hides it behind an exception of its own.
        said = failure.__cause__ if isinstance(failure, click.Abort) else failure
        print_error(in_options(_line(str(said))) if said and said.args else "Stopped.")
        return STOPPED
    if isinstance(failure, BrokenPipeError | SystemExit):
        # click and rich exit by themselves only when the output's reader is gone.
        _silence()
        return UNREAD
    sentence = _sentence(failure)
    if sentence is None:
        return _bug(failure)
    print_error(f"unless: {sentence}")
    return REFUSED


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Show what the library warns of as a sentence, and what others do as Python would."""
    with warnings.catch_warnings():
        show = warnings.showwarning

        def show_warning(message: Any, category: type[Warning], *where: Any, **more: Any) -> None:
            if issubclass(category, UnlessWarning):
                print_error(f"unless: {in_options(_line(str(message)))}")
            else:
                show(message, category, *where, **more)

        warnings.showwarning = show_warning
        yield


def in_options(sentence: str) -> str:
    """Rewrite the library's arguments as options: missing='drop' becomes --missing 'drop'."""
    return _MENTION.sub(_option, sentence)


def option_named(argument: str) -> str:
    """Return the option for an argument of the library: "n_jobs" is --jobs."""
    return _OPTIONS.get(argument, f"--{argument.replace('_', '-')}")


def _option(match: re.Match[str]) -> str:
    if match["name"] is None:
        return match[0]
    option = option_named(match["name"])
    if match["column"]:
        return f"{option} {match['column']}={match['spec']}"
    # The value itself is left to the next match, which leaves it alone if it is quoted.
    return option if match["value"] is None else f"{option} "


def _sentence(failure: BaseException) -> str | None:
    if isinstance(failure, click.UsageError):
        return _usage(failure)
    if isinstance(failure, click.ClickException):
        return _line(failure.format_message())
    if isinstance(failure, UnlessError):
        return in_options(_line(str(failure)))
    if isinstance(failure, OSError) and failure.strerror and not is_out_of_memory(failure):
        named = f"{os.fspath(failure.filename)!r}: " if isinstance(failure.filename, str | bytes) else ""
        return _line(f"{named}{failure.strerror}.")
    if is_out_of_memory(failure):
        return in_options(str(out_of_memory()))
    return None


def _usage(failure: click.UsageError) -> str:
    message = _line(failure.format_message())
    if message.endswith("?"):
        return message.replace(". Did you mean", "; did you mean")
    where = failure.ctx.command_path if failure.ctx else "unless"
    return f"{message.rstrip('.')}; see '{where} --help'."


def _bug(failure: BaseException) -> int:
    if os.environ.get("UNLESS_DEBUG", "0") not in ("", "0"):
        traceback.print_exception(failure)
    message = _line(str(failure)).rstrip(".") or "no message"
    print_error(
        f"unless: This is a bug ({message}); please report it, with what UNLESS_DEBUG=1 makes it print."
    )
    return BUG


def _line(text: str) -> str:
    return visible(" ".join(text.split()))


def _silence() -> None:
    # Python would complain when it flushes stdout for the last time.
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        return
