"""The program `tallyveil`: its commands, and how it ends when something is wrong."""

from __future__ import annotations

import re
import signal
import sys
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from tallyveil.cli import (
    check,
    compare,
    demo,
    design,
    export,
    inspect,
    interpret,
    ladder,
    ledger,
    privatize,
    report,
    studio,
    verify,
)
from tallyveil.cli import (
    run as run_request,
)
from tallyveil.cli.common import fail, spell

__all__ = ["app", "run"]

QUOTED = re.compile(r"(?<!Got )(?<!olumn )'(?:([a-z_]+)|(--[a-z-]+))'")
"""The name of an argument in a message, or one that is spelled already."""


class QuietGroup(TyperGroup):
    """The commands; what the library for command lines quotes of them shows no password."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        from tallyveil.passwords import hide_passwords

        try:
            return super().invoke(ctx)
        except Exception as problem:
            said = getattr(problem, "message", None)
            if isinstance(said, str):  # of an error of that library
                vars(problem)["message"] = hide_passwords(said)
            raise


app = typer.Typer(
    name="tallyveil",
    cls=QuietGroup,
    help="Release private counts: choose the best mechanism, prove it, draw from it.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("demo", epilog=demo.EXAMPLE)(demo.command)
app.command("inspect", epilog=inspect.EXAMPLE)(inspect.command)
app.command("privatize", epilog=privatize.EXAMPLE)(privatize.command)
app.command("run", epilog=run_request.EXAMPLE)(run_request.command)
app.command("design", epilog=design.EXAMPLE)(design.command)
app.command("compare", epilog=compare.EXAMPLE)(compare.command)
app.command("verify", epilog=verify.EXAMPLE)(verify.command)
app.command("ladder", epilog=ladder.EXAMPLE)(ladder.command)
app.command("interpret", epilog=interpret.EXAMPLE)(interpret.command)
app.command("check", epilog=check.EXAMPLE)(check.command)
app.command("export", epilog=export.EXAMPLE)(export.command)
app.command("report", epilog=report.EXAMPLE)(report.command)
app.command("studio", epilog=studio.EXAMPLE)(studio.command)
app.add_typer(ledger.app, name="ledger")


@app.callback(invoke_without_command=True)
def root(
    version: bool = typer.Option(
        False, "--version", help="Print the version and the program's fingerprint."
    ),
    debug: bool = typer.Option(False, "--debug", help="Show tracebacks (after any command too)."),
) -> None:
    """Release private counts: choose the best mechanism, prove it, draw from it."""
    if version:
        from tallyveil import __version__
        from tallyveil.fingerprint import fingerprint

        typer.echo(f"tallyveil {__version__}\nfingerprint {fingerprint()}")
        raise typer.Exit


def run() -> None:
    """Run the program; errors are one paragraph unless --debug is given."""
    from tallyveil.errors import ArgumentError, MechanismError, TallyveilError

    debug = "--debug" in sys.argv
    sys.argv = [word for word in sys.argv if word != "--debug"]
    signal.signal(signal.SIGTERM, _terminated)
    try:
        app()
    except (TallyveilError, OSError) as problem:
        if debug:
            raise
        is_usage = isinstance(problem, ArgumentError) and not isinstance(problem, MechanismError)
        words = _spell_options(_sentence(problem)) if is_usage else _sentence(problem)
        sys.exit(fail(words, code=2 if is_usage else 1))
    except Exception as problem:
        if debug:
            raise
        # An unexpected error's text may hold anything, even a count: name only its kind.
        sys.exit(
            fail(
                f"Something unexpected went wrong ({type(problem).__name__}).{_notes(problem)} "
                "Run the command again with --debug to see where."
            )
        )


def _sentence(problem: Exception) -> str:
    if isinstance(problem, OSError) and problem.strerror and problem.filename:
        return f"{problem.filename}: {problem.strerror}.{_notes(problem)}"
    return f"{problem}{_notes(problem)}"


def _notes(problem: Exception) -> str:
    """What was noted of an error on its way here: that a budget was spent."""
    return "".join(f" {note}" for note in getattr(problem, "__notes__", ()))


def _spell_options(message: str) -> str:
    """A message that names arguments as Python does, in the spelling of the command line.

    Quoted names of columns and values stay as they are.
    """
    command: Any = typer.main.get_command(app)
    for word in sys.argv[1:]:
        command = getattr(command, "commands", {}).get(word, command)
    known = {parameter.name: spell(parameter) for parameter in command.params}
    return QUOTED.sub(lambda found: known.get(found[1], found[2] or found[0]), message)


def _terminated(number: int, frame: object) -> NoReturn:
    """End in order, so that temporary folders are removed."""
    sys.exit(128 + number)
