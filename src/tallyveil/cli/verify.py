"""`tallyveil verify`: is this file private? Proves certified mechanisms, audits plain matrices."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tallyveil.cli.common import JsonOption, example, out, print_json

if TYPE_CHECKING:
    from tallyveil.mechanism import Mechanism
    from tallyveil.proof.ratios import Verdict

__all__ = ["EXAMPLE", "command"]

EXAMPLE = example("tallyveil verify release/mechanism.json --epsilon 1")

AUDIT_SLACK = 1e-9  # printed decimals are rounded; a proof needs a certified mechanism


def command(
    file: Annotated[Path, typer.Argument(help="A mechanism file, certificate, CSV or ptable.")],
    epsilon: Annotated[
        str | None, typer.Option("--epsilon", help="Also require this epsilon, or a smaller one.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Check that a mechanism is private; exit with 0 if it is, 1 if not.

    A certified mechanism is proved from scratch in integer arithmetic. A plain CSV matrix, a
    ptable or a mechanism in floating point is audited: realised epsilon, worst cell,
    properties.
    """
    floats = _floats(file)
    if floats is None:
        from tallyveil.proof.verify import verify

        verdict = verify(file, epsilon)
        summary, ok = _proof(verdict), verdict.ok
    else:
        summary = _audit(floats, epsilon)
        ok = bool(summary["private"])
    if as_json:
        print_json(summary)
    else:
        _show(file, summary)
    raise typer.Exit(0 if ok else 1)


def _floats(file: Path) -> Mechanism | None:
    """The matrix of doubles in `file`, or None if it is (or should be) a certified mechanism."""
    from tallyveil.mechanism import FORMAT, Mechanism

    text = file.read_bytes().decode("utf-8", errors="replace")
    if not text.lstrip("\ufeff \n\r\t").startswith(("{", "[")) and file.suffix != ".json":
        return Mechanism.from_csv(text if "\n" in text else text + "\n")
    try:
        data = json.loads(text)
    except ValueError:
        return None
    wanted = isinstance(data, dict) and data.get("format") == FORMAT
    return Mechanism.from_dict(data) if wanted else None


def _proof(verdict: Verdict) -> dict[str, Any]:
    worst = verdict.worst
    return {
        "kind": "certified",
        "private": verdict.ok,
        "reason": verdict.reason,
        "epsilon": None if verdict.epsilon is None else str(verdict.epsilon),
        "delta": None if verdict.delta is None else str(verdict.delta),
        "achieved_epsilon": _finite(verdict.achieved_epsilon),
        "worst_cell": None if worst is None else str(worst),
    }


def _audit(mechanism: Mechanism, epsilon: str | None) -> dict[str, Any]:
    from tallyveil.exact import exact_epsilon

    realised = mechanism.realised_epsilon()
    finite = _finite(realised)
    if epsilon is None:
        wanted, private = mechanism.exact_epsilon, finite is not None
    else:
        wanted = exact_epsilon(epsilon)
        private = finite is not None
    if wanted is not None and finite is not None:
        private = finite <= float(wanted) * (1 + AUDIT_SLACK)
    worst = mechanism.worst_pair()
    first = mechanism.matrix[worst.likelier, worst.output]
    second = mechanism.matrix[worst.rarer, worst.output]
    inputs, outputs = mechanism.query.inputs, mechanism.query.outputs
    return {
        "kind": "audited",
        "private": private,
        "reason": "Audited in floating point; certify it to prove it.",
        "epsilon": None if wanted is None else str(wanted),
        "delta": None,
        "achieved_epsilon": finite,
        "worst_cell": f"released {outputs[worst.output]}: true {inputs[worst.likelier]} has "
        f"{first:.6g}, true {inputs[worst.rarer]} has {second:.6g}",
        "properties": mechanism.properties(),
    }


def _finite(value: float | None) -> float | None:
    return None if value is None or value == float("inf") else float(value)


def _show(file: Path, summary: dict[str, Any]) -> None:
    from rich.markup import escape

    word = "[bold green]private[/]" if summary["private"] else "[bold red]NOT PRIVATE[/]"
    out.print(f"{escape(file.name)}: {word}")
    achieved = summary["achieved_epsilon"]
    rows = [
        ("claimed epsilon", summary["epsilon"]),
        ("claimed delta", summary["delta"] if summary["delta"] not in (None, "0") else None),
        ("realised epsilon", f"{achieved:.12g}" if achieved is not None else None),
        ("worst cell", summary["worst_cell"]),
        ("how", summary["reason"]),
    ]
    if summary["kind"] == "audited" and achieved is None:
        rows.insert(2, ("realised epsilon", "infinite: a zero stands beside a positive"))
    for name, value in rows:
        if value is not None:
            out.print(f"  {name:<17} {escape(str(value))}")
    held = [name for name, holds in summary.get("properties", {}).items() if holds]
    if "properties" in summary:
        out.print(f"  {'properties':<17} {', '.join(held) or 'none'}")
