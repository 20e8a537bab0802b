"""`tallyveil demo`: the whole journey on an invented table."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tallyveil.cli.common import JsonOption, example, out, print_json, text_table

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["EXAMPLE", "command"]

EXAMPLE = example("tallyveil demo --out demo/")
MARKER = ".tallyveil-demo"
UPPER, EPSILON, BUDGET = 60, "1", "2"


def command(
    folder: Annotated[Path, typer.Option("--out", help="Where the files go.")] = Path("demo"),
    as_json: JsonOption = False,
) -> None:
    """Publish an invented table of cases by county: compare, certify, privatize, check."""
    from tallyveil.release.demo import counts_of, demo_csv

    start = time.perf_counter()
    _make_folder(folder)
    say = _silent if as_json else _print
    text = demo_csv()
    (folder / "cases.csv").write_text(text, encoding="utf-8", newline="\n")
    true = counts_of(text)
    say(f"1. A confidential table: {folder / 'cases.csv'}, {len(true):,} invented counties.")
    compared = _compare()
    say(
        "\n2. What is the best mechanism for a count from 0 to "
        f"{UPPER} at epsilon {EPSILON}? Expected error:\n"
    )
    say(_indented(text_table(("mechanism", "mean error", "at 0", "says the truth"), compared)))
    say("\n3. Proved private in integers, debited from a ledger, drawn, packed:")
    release = _publish(folder)
    for stage in release.receipt.stages:
        say(f"   {stage.name}: epsilon {float(stage.epsilon):.6g}")
    checks = _check(folder)
    say("\n4. A stranger checks the folder:")
    for finding in checks:
        say(f"   {'ok  ' if finding.ok else 'FAIL'} {finding.name}: {finding.detail}")
    say("\n5. Counties with each number of cases, before and after:\n")
    say(_picture(true, release.published["cases"].counts))
    seconds = time.perf_counter() - start
    good = all(finding.ok for finding in checks)
    if as_json:
        print_json(
            {
                "out": str(folder),
                "release": str(folder / "release"),
                "ok": good,
                "seconds": round(seconds, 2),
                "epsilon": float(release.receipt.epsilon),
            }
        )
    say(f"\nThe package: {folder / 'release'}. Read {folder / 'release' / 'METHODOLOGY.html'}.")
    say(
        f"The ledger: {folder / 'budget.db'}. Not to be published: cases.csv and "
        f"confidential.html.\nDone in {seconds:.1f} seconds."
    )
    raise typer.Exit(0 if good else 1)


def _make_folder(folder: Path) -> None:
    """A fresh folder; one that an earlier demo made is replaced, nothing else is."""
    from tallyveil.errors import PackageError

    if (folder / MARKER).is_file():
        shutil.rmtree(folder)
    elif folder.exists():
        raise PackageError(f"{str(folder)!r} exists and is not an earlier demo; name a new folder.")
    folder.mkdir(parents=True)
    (folder / MARKER).write_text("Made by tallyveil demo, which may replace this folder.\n")


def _compare() -> list[tuple[str, str, str, str]]:
    """Mean absolute error, error at zero and chance of the truth for four mechanisms."""
    from tallyveil.mechanisms.exponential import fair, uniform
    from tallyveil.mechanisms.geometric import geometric
    from tallyveil.optimize.design import design
    from tallyveil.query import Query

    query = Query.count(UPPER)
    best = design(query, EPSILON, loss="absolute", properties=("fair", "column_monotone"))
    mechanisms: list[tuple[str, Any]] = [
        ("geometric", geometric(query, EPSILON)),
        ("fair, closed form", fair(query, EPSILON)),
        ("fair, least error", best.mechanism),
        ("guessing", uniform(query)),
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
    """The main job, as `tallyveil privatize` does it."""
    from tallyveil.budget.ledger import Ledger
    from tallyveil.release.options import Output, ReleaseOptions
    from tallyveil.release.transaction import publish_table

    ledger = Ledger.create(folder / "budget.db")
    ledger.open("cases", BUDGET)
    options = ReleaseOptions(
        count="cases",
        upper=UPPER,
        keep="all",
        epsilon=EPSILON,
        out=str(folder / "release"),
        ledger=ledger,
        dataset="cases",
        output=Output(confidential_report=str(folder / "confidential.html")),
    )
    (release,) = publish_table(folder / "cases.csv", options, command="tallyveil demo")
    return release


def _check(folder: Path) -> Any:
    from tallyveil.check.package import check_package

    return check_package(folder / "release")


def _picture(true: NDArray[np.int64], released: NDArray[np.int64], width: int = 44) -> str:
    """Two histograms side by side in text: before and after."""
    import numpy as np

    edges = [0, 1, 2, 3, 4, 5, 8, 12, 20, 35, UPPER + 1]
    before, after = (np.histogram(np.minimum(x, UPPER), edges)[0] for x in (true, released))
    top = max(before.max(), after.max())
    lines = []
    for at, low in enumerate(edges[:-1]):
        high = edges[at + 1] - 1
        label = f"{low}" if low == high else f"{low} to {high}"
        for name, rows in ((label, before[at]), ("", after[at])):
            bar = ("█" if name else "░") * max(1 if rows else 0, round(width * rows / top))
            lines.append(f"   {name:>8}  {bar} {rows}")
    return "\n".join([*lines, "", "             █ true counts   ░ published counts"])


def _indented(text: str) -> str:
    return "\n".join("   " + line for line in text.splitlines())


def _print(text: str) -> None:
    out.print(text, markup=False)


def _silent(_: str) -> None:
    """Say nothing: JSON was asked for."""
