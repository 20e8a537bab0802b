"""`tallyveil demo`: the whole journey on an invented table."""

from __future__ import annotations

import shutil
import textwrap
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import tallyveil as tv
from tallyveil.cli.common import JsonOption, answer, example, out, text_table

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

EXAMPLE = example("tallyveil demo --out demo/")
MARKER = ".tallyveil-demo"
UPPER, EPSILON, BUDGET = 60, "1", "2"


def command(
    folder: Annotated[
        Path, typer.Option("--out", metavar="FOLDER", help="Where the files go.")
    ] = Path("demo"),
    as_json: JsonOption = False,
) -> None:
    """Publish an invented table of cases by county: compare, certify, privatize, check."""
    from tallyveil.release.demo import counts_of, demo_csv

    start = time.perf_counter()
    _make_folder(folder)
    text = demo_csv()
    (folder / "cases.csv").write_text(text, encoding="utf-8", newline="\n")
    true, package = counts_of(text), folder / "release"

    def say(text: str) -> None:
        if not as_json:
            out.print(text)

    say(f"1. A confidential table: {folder / 'cases.csv'}, {len(true):,} invented counties.")
    errors = text_table(("mechanism", "mean error", "at 0", "says the truth"), _compare())
    say(
        "\n2. What is the best mechanism for a count from 0 to "
        f"{UPPER} at epsilon {EPSILON}? Expected error:\n"
    )
    say(textwrap.indent(errors, "   "))
    say("\n3. Proved private in integers, debited from a ledger, drawn, packed:")
    release = _publish(folder)
    for stage in release.receipt.stages:
        say(f"   {stage.name}: epsilon {float(stage.epsilon):.6g}")
    findings = tv.check_package(package)
    say("\n4. A stranger checks the folder:")
    for finding in findings:
        say(f"   {'ok  ' if finding.ok else 'FAIL'} {finding.name}: {finding.detail}")
    say("\n5. Counties with each number of cases, before and after:\n")
    say(_picture(true, release.published["cases"].counts))
    seconds = time.perf_counter() - start
    is_good = all(finding.ok for finding in findings)
    data = {
        "out": str(folder),
        "release": str(package),
        "ok": is_good,
        "seconds": round(seconds, 2),
        "epsilon": float(release.receipt.epsilon),
    }
    end = (
        f"\nThe package: {package}. Read {package / 'METHODOLOGY.html'}.\n"
        f"The ledger: {folder / 'budget.db'}. Not to be published: cases.csv and "
        f"confidential.html.\nDone in {seconds:.1f} seconds."
    )
    answer(data, end, as_json=as_json)
    raise typer.Exit(0 if is_good else 1)


def _make_folder(folder: Path) -> None:
    """Make a fresh folder; one that an earlier demo made is replaced, nothing else is."""
    if (folder / MARKER).is_file():
        shutil.rmtree(folder)
    elif folder.exists():
        raise tv.PackageError(
            f"{str(folder)!r} exists and is not an earlier demo; name a new folder."
        )
    folder.mkdir(parents=True)
    (folder / MARKER).write_text("Made by tallyveil demo, which may replace this folder.\n")


def _compare() -> list[tuple[str, str, str, str]]:
    """Return mean absolute error, error at zero and chance of the truth for four mechanisms."""
    query = tv.Query.count(UPPER)
    best = tv.design(query, EPSILON, loss="absolute", properties=("fair", "column_monotone"))
    mechanisms: list[tuple[str, Any]] = [
        ("geometric", tv.geometric(query, EPSILON)),
        ("fair, closed form", tv.fair(query, EPSILON)),
        ("fair, least error", best.mechanism),
        ("guessing", tv.uniform(query)),
    ]
    return [
        (
            name,
            f"{m.expected_loss('absolute'):.3f}",
            f"{m.loss_by_input('absolute')[0]:.3f}",
            f"{1 - m.error_probability():.1%}",
        )
        for name, m in mechanisms
    ]


def _publish(folder: Path) -> Any:
    """Release the table, as `tallyveil privatize` does it."""
    from tallyveil.release.transaction import publish_table

    ledger = tv.Ledger.create(folder / "budget.db")
    ledger.open("cases", BUDGET)
    options = tv.ReleaseOptions(
        count="cases",
        upper=UPPER,
        keep="all",
        epsilon=EPSILON,
        out=str(folder / "release"),
        ledger=ledger,
        dataset="cases",
        output=tv.Output(confidential_report=str(folder / "confidential.html")),
    )
    (release,) = publish_table(folder / "cases.csv", options, command="tallyveil demo")
    return release


def _picture(true: NDArray[np.int64], released: NDArray[np.int64], width: int = 44) -> str:
    """Draw two histograms side by side in text: before and after."""
    import numpy as np

    edges = [0, 1, 2, 3, 4, 5, 8, 12, 20, 35, UPPER + 1]
    before, after = (np.histogram(np.minimum(x, UPPER), edges)[0] for x in (true, released))
    top = max(before.max(), after.max())
    lines = []
    for low, end, rows_before, rows_after in zip(edges, edges[1:], before, after, strict=False):
        label = f"{low}" if low == end - 1 else f"{low} to {end - 1}"
        for name, rows in ((label, rows_before), ("", rows_after)):
            bar = ("█" if name else "░") * max(1 if rows else 0, round(width * rows / top))
            lines.append(f"   {name:>8}  {bar} {rows}")
    return "\n".join([*lines, "", "             █ true counts   ░ published counts"])
