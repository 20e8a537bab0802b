"""`tallyveil check`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tallyveil.cli.common import JsonOption, example, out, print_json

__all__ = ["EXAMPLE", "command"]

EXAMPLE = example("tallyveil check release/")


def command(
    folder: Annotated[Path, typer.Argument(help="The release folder.", show_default=False)],
    as_json: JsonOption = False,
) -> None:
    """Check a release folder offline: checksums, certificate, budget, ranges, consistency."""
    from tallyveil.publish.check import check_package

    findings = check_package(folder)
    good = all(finding.ok for finding in findings)
    if as_json:
        print_json({"ok": good, "checks": [finding.to_dict() for finding in findings]})
    else:
        for finding in findings:
            mark = "[green]ok  [/]" if finding.ok else "[bold red]FAIL[/]"
            out.print(f"{mark} ", end="")
            out.print(f"{finding.name}: {finding.detail}", markup=False)
        verdict = "This release checks." if good else "This release does NOT check."
        out.print(verdict, style="bold" if good else "bold red")
    raise typer.Exit(0 if good else 1)
