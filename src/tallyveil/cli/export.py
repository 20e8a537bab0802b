"""`tallyveil export`: a copy of a released table for another program."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tallyveil.cli.common import JsonOption, example, out, print_json

__all__ = ["EXAMPLE", "command"]

EXAMPLE = example("tallyveil export release/ cases.xlsx")


def command(
    folder: Annotated[Path, typer.Argument(help="The release folder.", show_default=False)],
    file: Annotated[
        Path,
        typer.Argument(
            help="The copy: .xlsx, .dta, .sav, .tsv, .feather or .csv.", show_default=False
        ),
    ],
    delimiter: Annotated[
        str, typer.Option(help="What separates the cells of a .csv file, such as ';'.")
    ] = ",",
    as_json: JsonOption = False,
) -> None:
    """Copy a released table for Excel, Stata, SPSS or R; the release stays as it is."""
    from tallyveil.release.export import export

    target = export(folder, file, delimiter=delimiter)
    if as_json:
        print_json({"out": str(target)})
        return
    out.print(f"{target}: a copy, which nothing checks. Publish the folder itself.", markup=False)
