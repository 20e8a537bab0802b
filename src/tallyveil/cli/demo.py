"""`tallyveil demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["command"]


def command(
    out_folder: Annotated[Path, typer.Option("--out", help="Where the files go.")] = Path("demo"),
) -> None:
    """Show what Tallyveil does, on generated data."""
    from tallyveil.cli.common import out

    out_folder.mkdir(parents=True, exist_ok=True)
    out.print(f"Written to {out_folder}")
