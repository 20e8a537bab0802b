"""The program `tallyveil`: its commands, and how it ends when something is wrong."""

from __future__ import annotations

import sys

import typer

from tallyveil.cli import demo, verify
from tallyveil.cli.common import fail

__all__ = ["app", "main"]

app = typer.Typer(
    name="tallyveil",
    help="Release private counts: choose the best mechanism, prove it, draw from it.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
app.command("demo")(demo.command)
app.command("verify")(verify.command)


@app.callback(invoke_without_command=True)
def root(
    version: bool = typer.Option(False, "--version", help="Print the version and stop."),
    debug: bool = typer.Option(False, "--debug", help="Show tracebacks."),
) -> None:
    """Release private counts: choose the best mechanism, prove it, draw from it."""
    if version:
        from tallyveil import __version__

        typer.echo(f"tallyveil {__version__}")
        raise typer.Exit


def main() -> None:
    """Run the program; errors are one paragraph unless --debug is given."""
    from tallyveil.errors import TallyveilError

    try:
        app()
    except (TallyveilError, OSError) as problem:
        if "--debug" in sys.argv:
            raise
        sys.exit(fail(str(problem)))
    except KeyboardInterrupt:
        sys.exit(fail("Interrupted; nothing was left half done.", 130))
