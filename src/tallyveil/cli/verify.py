"""`tallyveil verify`: proof of certified mechanisms, audit of plain matrices."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import tallyveil as tv
from tallyveil.cli.common import JsonOption, example, one_line, out, print_json

if TYPE_CHECKING:
    from tallyveil.evaluate import Audit
    from tallyveil.proof.ratios import Verdict

WORDS = ("query", "neighbours", "unit", "promise", "cannot be checked")
EXAMPLE = example("tallyveil verify release/mechanism.json --epsilon 1")


def command(
    file: Annotated[Path, typer.Argument(help="A mechanism file, certificate, CSV or ptable.")],
    epsilon: Annotated[
        str | None,
        typer.Option("--epsilon", metavar="E", help="Also require this epsilon, or a smaller one."),
    ] = None,
    upper: Annotated[
        int | None,
        typer.Option(
            "--upper",
            metavar="N",
            help="The last row of a CSV matrix or ptable goes on up to this count, as in cellKey.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Check that a mechanism is private; exit with 0 if it is, 1 if not.

    A certified mechanism is proved from scratch in integer arithmetic. A plain CSV matrix, a
    ptable or a mechanism in floating point is audited: realised epsilon, worst cell,
    properties.
    """
    from tallyveil.mechanism import is_matrix_file

    if file.is_dir():
        raise tv.UsageError(f"{file} is a folder. Check a release with: tallyveil check {file}")
    if is_matrix_file(file):
        from tallyveil.certified.files import read_mechanism
        from tallyveil.evaluate import audit_mechanism

        summary = _describe_audit(audit_mechanism(read_mechanism(file, upper=upper), epsilon))
    else:
        if upper is not None:
            raise tv.UsageError(
                "--upper is for a CSV matrix or a ptable; this file states its own."
            )
        from tallyveil.proof.verify import read_document
        from tallyveil.proof.words import NOT_PROVED, PROVED, describe_question

        verdict = tv.verify(file, epsilon)
        summary = _describe_proof(verdict)
        if verdict.ok:
            summary |= describe_question(read_document(file))
            summary |= {"promise": PROVED, "cannot be checked": NOT_PROVED}
    if as_json:
        print_json(summary)
    else:
        _show(file, summary)
    raise typer.Exit(0 if summary["private"] else 1)


def _describe_proof(verdict: Verdict) -> dict[str, Any]:
    return {
        "kind": "certified",
        "private": verdict.ok,
        "reason": verdict.reason,
        "epsilon": None if verdict.epsilon is None else str(verdict.epsilon),
        "delta": None if verdict.delta is None else str(verdict.delta),
        "achieved_epsilon": _finite(verdict.achieved_epsilon),
        "worst_cell": None if verdict.worst is None else str(verdict.worst),
    }


def _describe_audit(audit: Audit) -> dict[str, Any]:
    return {
        "kind": "audited",
        "private": audit.private,
        "reason": "Audited in floating point; certify it to prove it.",
        "epsilon": None if audit.epsilon is None else str(audit.epsilon),
        "delta": None,
        "needed_delta": audit.delta,
        "achieved_epsilon": _finite(audit.realised_epsilon),
        "worst_cell": audit.worst,
        "properties": audit.properties,
    }


def _finite(value: float | None) -> float | None:
    return None if value is None or value == float("inf") else float(value)


def _show(file: Path, summary: dict[str, Any]) -> None:
    is_private, achieved = summary["private"], summary["achieved_epsilon"]
    out.print(f"{one_line(file.name)}: ", end="")
    word, style = ("private", "bold green") if is_private else ("NOT PRIVATE", "bold red")
    out.print(word, style=style)
    realised = None if achieved is None else f"{achieved:.12g}"
    if summary["kind"] == "audited" and achieved is None:
        realised = "infinite: a zero next to a positive probability"
    needed = summary.get("needed_delta")
    rows = {
        "claimed epsilon": summary["epsilon"],
        "claimed delta": summary["delta"] if summary["delta"] != "0" else None,
        "realised epsilon": realised,
        "delta it needs": f"{needed:.6g} at the claimed epsilon" if needed else None,
        "worst cell": summary["worst_cell"],
        "how": summary["reason"],
        **{name: summary.get(name) for name in WORDS},
    }
    if (properties := summary.get("properties")) is not None:
        rows["properties"] = ", ".join(n for n, holds in properties.items() if holds) or "none"
    for name, value in rows.items():
        if value is not None:
            out.print(f"  {name:<17} {one_line(value)}")
