"""Exact composition of the ledger against dp-accounting, and what it buys.

    python -m benchmarks.composition [--quick] [--json FILE]

One run composes random ledgers of releases with `tv.compose`, in integers with every rounding
upwards, and with Google's dp-accounting (privacy loss distributions of discrete Laplace noise on
a fine grid), and compares the epsilon at delta 1e-6. Then it asks how much epsilon each of many
equal columns may have at a total of 1, against plain addition; and the same of the rows of one
person, if all of them are in different rows of the table, for small numbers of rows.

Bars: both agree to six digits on every ledger, ours never below; 100 columns get at least 2.3
times what addition gives. Exits with 1 if one is missed.
"""

from __future__ import annotations

import random
import sys
import time
from fractions import Fraction
from typing import Any

import tallyveil as tv
from benchmarks.measure import Bar, Plot, Result, Table, conduct, options, timed
from benchmarks.peers import Peer, peer

DELTA = Fraction(1, 10**6)
STEPS = ("0.01", "0.02", "0.03", "0.05", "0.1", "0.2", "0.25", "0.5")
"""Epsilons of the random ledgers; all are multiples of the peer's grid."""

ROWS = (4, 8, 10, 12, 16, 20, 30, 50, 100)
TOTALS = ("0.1", "0.5", "1", "2", "4")

ASK = """
import sys
from dp_accounting.pld import privacy_loss_distribution as pld
made = {}
for line in sys.argv[1:]:
    total = None
    for word in line.split(","):
        epsilon, times = word.split("x")
        if epsilon not in made:
            made[epsilon] = pld.from_discrete_laplace_mechanism(
                float(epsilon), sensitivity=1, value_discretization_interval=1e-4)
        part = made[epsilon].self_compose(int(times))
        total = part if total is None else total.compose(part)
    print(total.get_epsilon_for_delta(1e-6), end=" ")
print()
"""


def draw_ledger(number: int) -> dict[str, int]:
    """How often each epsilon was spent in ledger `number`."""
    pick = random.Random(number)
    kinds = pick.sample(STEPS, pick.randint(1, 4))
    return {epsilon: pick.randint(1, 40) for epsilon in kinds}


def compose_ours(ledger: dict[str, int]) -> tuple[float, float]:
    """Epsilon at delta 1e-6, and processor seconds."""
    epsilons = [Fraction(epsilon) for epsilon, times in ledger.items() for _ in range(times)]
    seconds, loss = timed(lambda: tv.compose(epsilons), 1, time.process_time)
    return float(loss.epsilon(DELTA)), seconds


def ask_peer(google: Peer, ledgers: list[dict[str, int]]) -> list[float] | None:
    lines = [",".join(f"{epsilon}x{times}" for epsilon, times in one.items()) for one in ledgers]
    return google.run(ASK, *lines)


def share_columns(columns: int) -> dict[str, Any]:
    """The epsilon that each of many columns may have at a total of 1, and the gain."""
    each = tv.share_epsilon(columns, Fraction(1), DELTA)
    return {"columns": columns, "each": float(each), "gain": float(each * columns)}


def gain_rows(rows: int) -> tuple[str, ...]:
    """What exact composition gains over k times epsilon for k rows, at several totals."""
    gains = (tv.share_epsilon(rows, Fraction(e), DELTA) * rows / Fraction(e) for e in TOTALS)
    return str(rows), *(f"{float(gain):.3f}" for gain in gains)


def run(quick: bool) -> Result:
    ledgers = [draw_ledger(number) for number in range(20 if quick else 200)]
    google = peer("dp_accounting", install=not quick)
    ours = [compose_ours(ledger) for ledger in ledgers]
    theirs = ask_peer(google, ledgers)
    shares = [
        share_columns(columns) for columns in ((10, 100) if quick else (10, 19, 50, 100, 400))
    ]
    gain = next(row["gain"] for row in shares if row["columns"] == 100)
    bars = [Bar("100 columns: 2.3 times what addition gives", f"{gain:.2f} times", gain >= 2.3)]
    rows = [("seconds for one ledger, most", f"{max(seconds for _, seconds in ours):.2f}")]
    if theirs is not None:
        off = [mine / other - 1 for (mine, _), other in zip(ours, theirs, strict=True)]
        worst = max(map(abs, off))
        rows += [("largest relative difference", f"{worst:.1e}"), ("least", f"{min(off):.1e}")]
        bars.append(Bar("six digits on every ledger", f"{worst:.1e}", worst <= 1e-6))
    return Result(
        "What do many releases cost together?",
        f"{len(ledgers)} random ledgers of 1 to 160 releases, epsilon at delta 1e-6.",
        [
            Table("Agreement with dp-accounting", ("what", "figure"), rows),
            Table(
                "Epsilon of each column at a total of 1 and delta 1e-6",
                ("columns", "addition", "exact composition", "gain"),
                [
                    (
                        str(row["columns"]),
                        f"{1 / row['columns']:.4f}",
                        f"{row['each']:.4f}",
                        f"{row['gain']:.2f}",
                    )
                    for row in shares
                ],
            ),
            Table(
                "Epsilon of each of k different rows of one person, times k, at delta 1e-6",
                ("rows", *(f"total {total}" for total in TOTALS)),
                [gain_rows(rows) for rows in (ROWS[1:6:2] if quick else ROWS)],
            ),
        ],
        plots=[
            Plot(
                "Epsilon of each column",
                "columns",
                "epsilon",
                {
                    "addition": (
                        [row["columns"] for row in shares],
                        [1 / row["columns"] for row in shares],
                    ),
                    "exact composition": (
                        [row["columns"] for row in shares],
                        [row["each"] for row in shares],
                    ),
                },
            )
        ],
        bars=bars,
        raw={"shares": shares, "ours": ours, "theirs": theirs},
        peers={"dp_accounting": google.state},
    )


def main(arguments: list[str] | None = None) -> int:
    given = options(__doc__).parse_args(arguments)
    return conduct("composition", lambda: run(given.quick), given)


if __name__ == "__main__":
    sys.exit(main())
