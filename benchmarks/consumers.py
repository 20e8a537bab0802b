"""Minimax responses over the geometric mechanism: remaps against the n^2 program.

    python -m benchmarks.consumers [--quick] [--json FILE]

One run compares, on the same mechanism and loss, the response found in the space of remaps with
the program of Gupte and Sundararajan (2010), section 2.5, over all private mechanisms (HiGHS), at
sizes both can do; then times the response up to 1001 answers.

Bars: the two optima agree to 1e-6; remaps are at least 5 times faster at 41 answers; every gap
is certified below 1e-7; 1001 answers take under 60 s of processor time. Exits with 1 if one is
missed. Seconds are processor time, which other work on the machine disturbs least.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

import tallyveil as tv
from benchmarks.measure import Bar, Plot, Result, Table, conduct, exponent, options, timed
from tallyveil.loss import loss_table
from tallyveil.optimize.solver import Program, solve

LARGE = (
    ("1", "absolute", None),
    ("0.1", "absolute", None),
    ("0.1", "absolute", range(5, 1001)),
    ("0.1", "squared", None),
    ("0.01", "absolute", None),
    ("1", "zero_one", None),
)
"""Epsilon, loss and side information of the responses at 1001 answers."""


def private_program(n: int, epsilon: float, losses: np.ndarray) -> Program:
    """Minimise the largest expected loss over all epsilon-private mechanisms of a count."""
    eye, grow = sparse.eye_array(n), float(np.exp(epsilon))
    up = sparse.eye_array(n - 1, n) - grow * sparse.eye_array(n - 1, n, k=1)
    down = sparse.eye_array(n - 1, n, k=1) - grow * sparse.eye_array(n - 1, n)
    ratios = sparse.vstack([sparse.kron(up, eye), sparse.kron(down, eye)])
    by_truth = sparse.block_diag([row[None, :] for row in losses])
    worst = sparse.hstack([by_truth, -np.ones((n, 1))])
    above = sparse.vstack([sparse.hstack([ratios, sparse.csr_array((2 * n * (n - 1), 1))]), worst])
    sums = sparse.hstack([sparse.kron(eye, np.ones((1, n))), sparse.csr_array((n, 1))])
    cost = np.zeros(n * n + 1)
    cost[-1] = 1.0
    return Program(cost, sums.tocsc(), np.ones(n), above.tocsc(), np.zeros(above.shape[0]))


def against_program(n: int, epsilon: float) -> dict[str, float]:
    """Seconds of both ways, and by how much their optima differ."""
    mechanism = tv.geometric(tv.Query.count(n - 1), epsilon)
    consumer, losses = tv.Consumer("absolute"), loss_table(mechanism.query, "absolute")
    seconds, response = timed(lambda: consumer.respond(mechanism), 3, time.process_time)
    start = time.process_time()
    optimum = solve(private_program(n, epsilon, losses), backend="highs").objective
    program = time.process_time() - start
    return {
        "answers": n,
        "remaps": seconds,
        "program": program,
        "ratio": program / seconds,
        "difference": abs(response.loss - optimum),
    }


def response_at(n: int, epsilon: str, loss: str, known: Sequence[int] | None) -> dict[str, Any]:
    """Seconds of one response, and the relative gap its certificate proves."""
    mechanism = tv.geometric(tv.Query.count(n - 1), epsilon)
    consumer = tv.Consumer(loss, side_information=known)
    seconds, response = timed(lambda: consumer.respond(mechanism), 1, time.process_time)
    return {
        "answers": n,
        "epsilon": epsilon,
        "loss": loss,
        "known": "all" if known is None else f"{known[0]}..{known[-1]}",
        "seconds": seconds,
        "gap": response.certificate.gap / response.loss,
    }


def run(quick: bool) -> Result:
    tv.Consumer("absolute").respond(tv.geometric(tv.Query.count(4), 1))  # imports the solver
    both = [against_program(n, 0.5) for n in ((11, 21) if quick else (11, 21, 41))]
    sizes = (51, 101, 201) if quick else (101, 201, 401, 1001)
    grown = [response_at(n, "0.1", "absolute", None) for n in sizes]
    large = [] if quick else [response_at(1001, *case) for case in LARGE]
    at = [row["answers"] for row in both]
    curves = {
        "tallyveil, epsilon 0.5": (at, [row["remaps"] for row in both]),
        "HiGHS, epsilon 0.5": (at, [row["program"] for row in both]),
        "tallyveil, epsilon 0.1": (sizes, [row["seconds"] for row in grown]),
    }
    slowest = max(row["seconds"] for row in grown + large)
    bars = [
        Bar(
            "the optima agree to 1e-6",
            f"{max(row['difference'] for row in both):.1e}",
            max(row["difference"] for row in both) <= 1e-6,
        ),
        Bar(
            "every certified gap is below 1e-7",
            f"{max(row['gap'] for row in grown + large):.1e}",
            max(row["gap"] for row in grown + large) <= 1e-7,
        ),
        Bar("every response takes under 60 s", f"{slowest:.1f} s", slowest <= 60),
    ]
    if not quick:
        ratio = both[-1]["ratio"]
        bars.append(
            Bar("5 times the program's speed at 41 answers", f"{ratio:.1f} times", ratio >= 5)
        )
    first = [
        (
            str(row["answers"]),
            f"{row['remaps']:.3f}",
            f"{row['program']:.3f}",
            f"{row['ratio']:.1f}",
            f"{row['difference']:.1e}",
        )
        for row in both
    ]
    second = [
        (
            str(row["answers"]),
            row["epsilon"],
            row["loss"],
            row["known"],
            f"{row['seconds']:.2f}",
            f"{row['gap']:.1e}",
        )
        for row in grown + large
    ]
    return Result(
        question="How long does a consumer's best response take?",
        method="Minimax responses to the geometric mechanism, processor seconds; the program "
        "optimises over all private mechanisms (Gupte and Sundararajan 2010, section 2.5) and has "
        "the same optimum.",
        tables=[
            Table(
                "Absolute loss, epsilon 0.5",
                ("answers", "tallyveil s", "HiGHS s", "ratio", "difference of the optima"),
                first,
            ),
            Table(
                "Larger ranges",
                (
                    "answers",
                    "epsilon",
                    "loss",
                    "known answers",
                    "seconds",
                    "certified relative gap",
                ),
                second,
            ),
        ],
        bars=bars,
        plots=[Plot("A minimax response", "answers", "seconds", curves)],
        exponents={f"{label}, against answers": exponent(*line) for label, line in curves.items()},
        raw={"against_program": both, "responses": grown + large},
    )


def main(arguments: list[str] | None = None) -> int:
    given = options(__doc__).parse_args(arguments)
    return conduct("consumers", lambda: run(given.quick), given)


if __name__ == "__main__":
    sys.exit(main())
