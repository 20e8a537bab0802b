"""`tallyveil check`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tallyveil.cli.common import JsonOption, example, one_line, out, print_json

__all__ = ["EXAMPLE", "command"]

EXAMPLE = example("tallyveil check release/")


def command(
    folder: Annotated[Path, typer.Argument(help="The release folder.", show_default=False)],
    ledger: Annotated[
        str | None, typer.Option(help="Also look for the release in this ledger.")
    ] = None,
    dataset: Annotated[str | None, typer.Option(help="The dataset's name in the ledger.")] = None,
    large: Annotated[
        bool,
        typer.Option(
            "--large", help="Read data that take longer than a file of their size should."
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Check a release folder offline: checksums, certificates, budget, ranges, consistency.

    Exits with 0 if all of it checks, and with 3 if all but the page does, because another version
    of Tallyveil wrote the page. With a ledger and a dataset, also whether the ledger's entry is
    the one that paid for it: found, not found or different.
    """
    from tallyveil.check.findings import judge
    from tallyveil.check.package import check_package
    from tallyveil.check.words import NOT_SHOWN, PROMISED, describe_checked
    from tallyveil.errors import UsageError

    if (ledger is None) != (dataset is None):
        raise UsageError("Give --ledger and --dataset together.")
    findings = check_package(folder, large=large)
    if ledger is not None and dataset is not None:
        from tallyveil.check.ledger import check_ledger

        findings.append(check_ledger(folder, ledger, dataset))
    verdict = judge(findings)
    facts = {} if verdict.code == 1 else describe_checked(folder)
    if as_json:
        said = {"promised": PROMISED, "cannot_be_checked": NOT_SHOWN}
        checks = [finding.to_dict() for finding in findings]
        head = {"ok": verdict.ok, "verdict": verdict.sentence, "checks": checks}
        print_json({**head, **facts, **said})
    else:
        for finding in findings:
            style = "green" if finding.ok else "bold red" if finding.compared else "yellow"
            out.print(f"{finding.mark:<4} ", end="", style=style)
            out.print(one_line(f"{finding.name}: {finding.detail}"), markup=False)
        out.print(verdict.sentence, style="bold" if verdict.ok else "bold red")
        _show_facts(facts)
    raise typer.Exit(verdict.code)


def _show_facts(facts: dict[str, str]) -> None:
    if not facts:
        return
    from tallyveil.check.words import NOT_SHOWN, PROMISED

    for name, words in facts.items():
        out.print(one_line(f"  {name:<11} {words}"), markup=False)
    for name, sentences in (("Shown:", PROMISED), ("No check can show:", NOT_SHOWN)):
        out.print(name)
        for sentence in sentences:
            out.print(f"  - {sentence}", markup=False)
