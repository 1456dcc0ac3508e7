"""The `unless` command: finds the command asked for, and answers each failure with a sentence and a code."""

import sys
from importlib import import_module
from typing import Any, NoReturn

import click

from unless import __version__
from unless.cli.failures import answer, plain_warnings
from unless.runtime.memory import check_process

# What `unless --help` lists: written here, because looking into the commands would import them.
COMMANDS = {
    "demo": "Learn from two small tables and say what is linked, and when.",
    "check": "Show what would be done with each column of a table, before it is learned from.",
    "learn": "Learn from a table and keep what was learned in a file.",
    "show": "Say what is linked in a saved model, and when, everywhere or in a context.",
    "ask": "Ask the rows of a saved model about two columns, given others or in a context.",
    "compare": "Say which links differ between two tables, or between the groups of one.",
    "report": "Write a model as one page that shows what is linked, and when.",
    "fit": "Fit weights to a structure, so that it can be asked, sampled and scored.",
    "query": "Ask a model how probable something is, or what is most probable.",
    "sample": "Draw rows from a model, as CSV.",
    "score": "Say how probable a table is under a model.",
    "convert": "Write a model or a graph in another format.",
    "datasets": "List the bundled tables, or write one as CSV.",
}


class Answering(click.Command):
    """A command whose failures are one sentence each."""

    def main(self, *args: Any, **extra: Any) -> NoReturn:
        """Run, and exit: 0 done, 1 a bug, 2 refused, 130 stopped, 141 the output's reader is gone.

        `__main__.py` exits with 143 and 129 instead where SIGTERM and SIGHUP stopped it.
        """
        for stream in (sys.stdout, sys.stderr):
            # A terminal that cannot write a name shows its code points instead.
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")
        try:
            # Left to itself, click would write its own messages.
            with plain_warnings():
                code = super().main(*args, **{**extra, "standalone_mode": False})
        except (Exception, KeyboardInterrupt, SystemExit) as failure:
            code = answer(failure)
        sys.exit(code or 0)


class Program(Answering, click.Group):
    """A group whose commands are imported when called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Name the commands in the order a newcomer meets them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import one command."""
        if cmd_name not in COMMANDS:
            self._suggest(cmd_name)
            return None
        check_process()
        command: click.Command = import_module(f"unless.cli.commands.{cmd_name}").command
        return command

    @staticmethod
    def _suggest(name: str) -> None:
        from difflib import get_close_matches

        for close in get_close_matches(name, COMMANDS, n=1):
            raise click.UsageError(f"There is no command {name!r}; did you mean {close!r}?")

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    "unless",
    cls=Program,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""
    \b
    Examples:
      unless demo
      unless check table.csv
      unless learn table.csv -o model.unless
      unless show model.unless --context Dept=A
      unless ask model.unless Admit Gender --given Dept
      unless report model.unless -o report.html --open
      unless fit model.unless table.csv -o fitted.unless
      unless query fitted.unless Admit --given Dept=A
    """,
)
@click.version_option(__version__, message="%(prog)s %(version)s")
@click.pass_context
def main(ctx: click.Context) -> None:
    """Find out which columns of a table of categories are linked, and when."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
