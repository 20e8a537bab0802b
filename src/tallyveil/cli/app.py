"""The program `tallyveil`: its commands, and how it ends when something is wrong."""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Callable
from typing import Any, NoReturn

import typer

import tallyveil as tv
from tallyveil.cli import (
    check,
    demo,
    design,
    inspect,
    interpret,
    ladder,
    ledger,
    privatize,
    studio,
    verify,
)
from tallyveil.cli.common import HELP_SETTINGS, HelpCommand, HelpGroup, fail, spell
from tallyveil.cli.options import spell_message, suggest_flag

QUOTED = re.compile(r"(?<!Got )(?<!olumn )'([a-z_]+)'")
"""The name of an argument in a message."""

OF_REQUESTS = ("privatize", "run", "ladder", "inspect")
"""The commands that take keys of a request."""


app = typer.Typer(
    name="tallyveil",
    cls=HelpGroup,
    help="Release tables of counts with differential privacy, and check and read releases.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings=HELP_SETTINGS,
)
for name, epilog, function in (
    ("demo", demo.EXAMPLE, demo.command),
    ("inspect", inspect.EXAMPLE, inspect.command),
    ("privatize", privatize.EXAMPLE, privatize.command),
    ("run", privatize.RUN_EXAMPLE, privatize.run_request),
    ("design", design.EXAMPLE, design.command),
    ("compare", design.COMPARE_EXAMPLE, design.compare_mechanisms),
    ("verify", verify.EXAMPLE, verify.command),
    ("ladder", ladder.EXAMPLE, ladder.command),
    ("interpret", interpret.EXAMPLE, interpret.command),
    ("check", check.EXAMPLE, check.command),
    ("export", check.EXPORT_EXAMPLE, check.export_table),
    ("report", check.REPORT_EXAMPLE, check.report),
    ("studio", studio.EXAMPLE, studio.command),
):
    app.command(name, cls=HelpCommand, epilog=epilog)(function)
app.add_typer(ledger.app, name="ledger")


@app.callback(invoke_without_command=True)
def root(
    version: bool = typer.Option(
        False, "--version", help="Print the version and the program's fingerprint."
    ),
    debug: bool = typer.Option(False, "--debug", help="Show tracebacks (after any command too)."),
) -> None:
    """Release tables of counts with differential privacy, and check and read releases."""
    if version:
        from tallyveil import __version__
        from tallyveil.fingerprint import fingerprint

        typer.echo(f"tallyveil {__version__}\nfingerprint {fingerprint()}")
        raise typer.Exit


def run(publish: Callable[..., Any] | None = None) -> None:
    """Run the program; errors are one paragraph unless --debug is given.

    `publish` takes the place of `publish_table` for tables that are elsewhere.
    """
    debug = "--debug" in sys.argv
    sys.argv = [word for word in sys.argv if word != "--debug"]
    signal.signal(signal.SIGTERM, _terminated)
    try:
        sys.exit(app(standalone_mode=False, obj=publish) or 0)
    except typer.Abort:
        sys.exit(fail("Aborted."))
    except typer.TyperException as problem:  # the command line itself is wrong
        sys.exit(_refuse_words(problem))
    except (tv.TallyveilError, OSError) as problem:
        if debug:
            raise
        is_usage = isinstance(problem, tv.ArgumentError) and not isinstance(
            problem, tv.MechanismError
        )
        words = _spell_options(_sentence(problem), is_usage=is_usage)
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


def _refuse_words(problem: Any) -> int:
    """Explain what is wrong with a command line, with the nearest right option."""
    context = getattr(problem, "ctx", None)
    message = problem.format_message()
    if context is not None and message == context.get_help():  # no words at all
        typer.echo(message, err=True)
        return int(problem.exit_code)
    name = getattr(problem, "option_name", "")
    if name and context is not None and name.startswith("-"):
        typed = [o for p in context.command.params for o in p.opts]
        every_key = context.command.name in OF_REQUESTS
        message = f"No such option {name!r}.{suggest_flag(name, typed, every_key=every_key)}"
    message += "" if message.endswith((".", "?")) else "."
    see = "" if context is None else f" See: {context.command_path} --help"
    return fail(message + see, code=int(problem.exit_code))


def _sentence(problem: Exception) -> str:
    if isinstance(problem, OSError) and problem.strerror and problem.filename:
        return f"{problem.filename}: {problem.strerror}.{_notes(problem)}"
    return f"{problem}{_notes(problem)}"


def _notes(problem: Exception) -> str:
    """Return the notes of an error, such as that a budget was spent."""
    return "".join(f" {note}" for note in getattr(problem, "__notes__", ()))


def _spell_options(message: str, *, is_usage: bool) -> str:
    """Spell the keys that a message quotes as the flags of the command that runs.

    Quoted names of columns and values stay as they are.
    """
    command: Any = typer.main.get_command(app)
    for word in sys.argv[1:]:
        command = getattr(command, "commands", {}).get(word, command)
    spellings = {parameter.name: spell(parameter) for parameter in command.params}
    if command.name in OF_REQUESTS:
        return spell_message(message, list(spellings.values()), every=is_usage)
    if not is_usage:
        return message
    return QUOTED.sub(lambda match: spellings.get(match[1], match[0]), message)


def _terminated(number: int, frame: object) -> NoReturn:
    """Exit by an exception, so that temporary folders are removed."""
    sys.exit(128 + number)
