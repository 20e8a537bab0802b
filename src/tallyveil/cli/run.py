"""`tallyveil run`: a release as a request file asks for it."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from tallyveil.cli.common import JsonOption, example
from tallyveil.cli.options import make_options, takes_given_options
from tallyveil.cli.privatize import (
    DryRunOption,
    LikeOption,
    RowsOption,
    Trial,
    publish_and_show,
    require_trial,
)

__all__ = ["EXAMPLE", "command"]

EXAMPLE = example(
    "tallyveil run release.toml --out release/",
    "tallyveil run release.toml --table cases-2026-02.xlsx --period 2026-02 --out february/",
)


@takes_given_options
def command(
    request: Annotated[Path, typer.Argument(help="The request, a TOML file.", show_default=False)],
    *,
    given: dict[str, Any],
    table: Annotated[
        str | None, typer.Option(help="The table, instead of the one in the request.")
    ] = None,
    dry_run: DryRunOption = False,
    rows: RowsOption = None,
    like: LikeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Publish what a request file asks for; options given here override those in the file.

    `tallyveil privatize ... --save-request FILE` writes such a file. Paths in it are relative to
    its own folder.
    """
    from tallyveil.errors import UsageError
    from tallyveil.request.request_file import read_request
    from tallyveil.request.tradeoff import leave_out_excluded

    named, asked = read_request(request)
    file = table or named
    if file is None and not dry_run:
        raise UsageError("The request names no table: give --table, or the key 'table'.")
    options = make_options({**leave_out_excluded(asked, given), **given})
    words = shlex.join(sys.argv)
    require_trial(dry_run, rows, like)
    trial = Trial(rows, like) if dry_run else None
    publish_and_show(None if file is None else Path(file), options, words, trial, as_json=as_json)
