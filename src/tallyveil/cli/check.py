"""`tallyveil check`, `report` and `export`: what a reader does with the folder of a release."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

import tallyveil as tv
from tallyveil.cli.common import (
    NO_LEDGER,
    JsonOption,
    LargeOption,
    answer,
    example,
    one_line,
    out,
    print_json,
)
from tallyveil.cli.dry_run import WIDTH, accuracy_table

if TYPE_CHECKING:
    from tallyveil.release.receipt import Receipt

EXAMPLE = example("tallyveil check release/")
REPORT_EXAMPLE = example(
    "tallyveil report release/", "tallyveil report release/ --out methodology.html"
)
EXPORT_EXAMPLE = example("tallyveil export release/ cases.xlsx")
Folder: TypeAlias = Annotated[Path, typer.Argument(help="The release folder.", show_default=False)]


def command(
    folder: Folder,
    ledger: Annotated[
        str | None, typer.Option(metavar="FILE", help="Also look for the release in this ledger.")
    ] = None,
    dataset: Annotated[
        str | None, typer.Option(metavar="NAME", help="The dataset's name in the ledger.")
    ] = None,
    large: LargeOption = False,
    as_json: JsonOption = False,
) -> None:
    """Check a release folder offline: checksums, certificates, budget, ranges, consistency.

    Exits with 0 if all of it checks, and with 3 if all but the page does, because another version
    of Tallyveil wrote the page. With a ledger and a dataset, also whether the ledger's entry is
    the one that paid for it: found, not found or different.
    """
    from tallyveil.check.findings import judge
    from tallyveil.check.package import NOT_SHOWN, describe_checked, list_shown

    if (ledger is None) != (dataset is None):
        raise tv.UsageError("Give --ledger and --dataset together.")
    findings = tv.check_package(folder, large=large)
    if ledger is not None and dataset is not None:
        from tallyveil.check.ledger import check_ledger

        findings.append(check_ledger(folder, ledger, dataset))
    verdict = judge(findings)
    facts = {} if verdict.code == 1 else describe_checked(folder)
    shown = list_shown(findings) if facts else ()
    if as_json:
        checks = [finding.to_dict() for finding in findings]
        head = {"ok": verdict.ok, "verdict": verdict.sentence, "checks": checks}
        print_json({**head, **facts, "promised": shown, "cannot_be_checked": NOT_SHOWN})
        raise typer.Exit(verdict.code)
    for finding in findings:
        style = "green" if finding.ok else "bold red" if finding.compared else "yellow"
        out.print(f"{finding.mark:<4} ", end="", style=style)
        out.print(one_line(f"{finding.name}: {finding.detail}"))
    out.print(verdict.sentence, style="bold" if verdict.ok else "bold red")
    for name, text in facts.items():
        out.print(one_line(f"  {name:<11} {text}"))
    if facts:
        for name, sentences in (("Shown:", shown), ("No check can show:", NOT_SHOWN)):
            out.print("\n  - ".join([name, *sentences]))
    raise typer.Exit(verdict.code)


def report(
    folder: Folder,
    target: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Write the methodology page here (HTML)."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Summarise a release: its guarantee, cost and accuracy; or build its methodology page again.

    Works from the release folder alone.
    """
    from tallyveil.release.release import read_receipt, rebuild_methodology

    receipt = read_receipt(folder)
    if target is not None:
        page = rebuild_methodology(folder)
        if target.exists():
            raise tv.PackageError(f"{str(target)!r} exists already; name a new file.")
        target.write_text(page, encoding="utf-8", newline="\n")
    page_line = f"\nMore in {target or folder / 'METHODOLOGY.html'}"
    text = "\n".join([*_describe_receipt(receipt), page_line])
    answer(receipt.to_dict(), text, as_json=as_json)


def _describe_receipt(receipt: Receipt) -> list[str]:
    """Write the promise, the cost, and how accurate each column is."""
    lines = [] if receipt.private else [receipt.warning, ""]
    lines += [*textwrap.wrap(receipt.promise, WIDTH), ""]
    stages = ", ".join(f"{one_line(s.name)} {float(s.epsilon):.6g}" for s in receipt.stages)
    unit, entry = receipt.unit, receipt.ledger
    slack = f", delta {float(receipt.delta):.6g}," if receipt.delta else ""
    costs = [f"epsilon {float(receipt.epsilon):.6g}{slack} for one {unit.kind} ({stages})"]
    if unit.multiplier > 1:
        how = "draws of a cell composed" if unit.delta else "times the epsilon of a cell"
        moves = f"{unit.neighbours}, contributions {unit.contributions}"
        costs.append(f"{unit.multiplier} {how}: {moves}")
    for group in receipt.disjoint:
        costs.append(f"{one_line(' and '.join(group))} are disjoint: charged once")
    paid = f"entry {entry.entry} of {entry.dataset!r}, debited before the draw" if entry else ""
    public = one_line(", ".join(receipt.table.published_unchanged))
    facts = {
        "cost": f"\n{'':<11}".join(costs),
        "unit": receipt.unit_name,
        "ledger": paid or NO_LEDGER,
        "unchanged": public or "no other column",
    }
    lines += [f"{name:<11}{text}" for name, text in facts.items()]
    from tallyveil.release.records import to_plain

    for column in receipt.columns:
        top_coded = ", larger ones top-coded" if column.bounded else ""
        lines += [
            "",
            f"{one_line(column.name)}: {column.method.name} ({one_line(column.why)}), counts "
            f"{column.range_words}{top_coded}",
            textwrap.indent(accuracy_table(to_plain(column.accuracy)), "  "),
        ]
    return lines


def export_table(
    folder: Folder,
    file: Annotated[
        Path,
        typer.Argument(
            help="The copy: .xlsx, .dta, .sav, .tsv, .feather or .csv.", show_default=False
        ),
    ],
    delimiter: Annotated[
        str,
        typer.Option(metavar="CHAR", help="What separates the cells of a .csv file, such as ';'."),
    ] = ",",
    as_json: JsonOption = False,
) -> None:
    """Copy a released table for Excel, Stata, SPSS or R; the release does not change."""
    target = str(tv.export(folder, file, delimiter=delimiter))
    text = f"{target}: This copy cannot be checked; the folder can. Publish the folder."
    answer({"out": target}, text, as_json=as_json)
