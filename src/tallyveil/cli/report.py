"""`tallyveil report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tallyveil.cli.common import JsonOption, example, out, print_json

__all__ = ["EXAMPLE", "command"]

EXAMPLE = example("tallyveil report release/", "tallyveil report release/ --out methodology.html")


def command(
    folder: Annotated[Path, typer.Argument(help="The release folder.", show_default=False)],
    target: Annotated[
        Path | None, typer.Option("--out", help="Write the methodology page here (HTML).")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Sum up a release: its promise, cost and accuracy; or build its methodology page again.

    Works from the release folder alone.
    """
    from tallyveil.cli.summary import receipt_lines
    from tallyveil.errors import PackageError
    from tallyveil.release.release import read_receipt, rebuild_methodology

    receipt = read_receipt(folder)
    if target is not None:
        page = rebuild_methodology(folder)
        if target.exists():
            raise PackageError(f"{str(target)!r} exists already; name a new file.")
        target.write_text(page, encoding="utf-8", newline="\n")
    if as_json:
        print_json(receipt.to_dict())
        return
    out.print("\n".join(receipt_lines(receipt)), markup=False)
    where = target or folder / "METHODOLOGY.html"
    out.print(f"\nThe whole story: {where}", markup=False)
