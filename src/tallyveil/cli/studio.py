"""`tallyveil studio`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import tallyveil as tv
from tallyveil.cli.common import JsonOption, answer, example

EXAMPLE = example(
    "tallyveil studio",
    "tallyveil studio --folder data/ --ledger budget.db",
)


def command(
    port: Annotated[
        int, typer.Option(help="Where to listen on this machine; 0 takes a free port.")
    ] = 0,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")
    ] = True,
    ledger: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="The budget ledger to debit: a file, or postgresql://..."
        ),
    ] = None,
    folder: Annotated[
        Path, typer.Option(help="Where tables are found and releases are written.")
    ] = Path(),
    as_json: JsonOption = False,
) -> None:
    """Publish, check and read releases in a browser, on this machine alone, until Ctrl-C.

    The address that is printed works once: it lets one browser in. Nothing leaves the machine.
    """
    if not 0 <= port <= 65535:
        raise tv.ArgumentError("--port", "lie between 0 and 65535", port)
    try:
        from tallyveil.studio.server import run_studio
    except ModuleNotFoundError as missing:
        raise tv.MissingExtraError(str(missing.name), "studio") from missing

    def say(address: str) -> None:
        text = f"The studio is open at {address}\nPress Ctrl-C to close it."
        answer({"address": address}, text, as_json=as_json)

    run_studio(folder, ledger, port, say, browser=browser)
