"""What certification and verification cost, in time against n and in accuracy.

    python -m benchmarks.certification [--quick] [--json FILE]

Time: `tv.certify` (repair, integer weights, exact check) and `tv.verify` (the exact check alone,
from the file) on the geometric mechanism, and on the same matrix with a solver's noise, which
needs repair. Accuracy: for every closed form, range, epsilon and noise level, the expected
absolute error after certification, relative to the clean matrix and to the matrix that was
handed in. Noise of 1e-9 far from the truth costs more than 1e-5 by itself at a large epsilon,
and repair takes most of it out again; so the bar compares with the larger of the two.

Bar: at noise 1e-9 and up to 501 answers, less than 1e-5 above it. Exits with 1 where missed.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import tallyveil as tv
from benchmarks.measure import Bar, Plot, Result, Table, conduct, exponent, options, timed

FORMS = ("geometric", "fair", "exponential", "laplace", "staircase")
EPSILONS = (1e-4, 1e-2, 0.1, 1.0, 5.0, 20.0)
NOISE = (0.0, 1e-9, 1e-7)
BAR, WIDEST = 1e-5, 500
STEPS = ("certify", "certify, after a solver", "verify the file")


def disturbed(clean: tv.Mechanism, noise: float) -> tv.Mechanism:
    """The mechanism as a solver with this absolute tolerance might return it."""
    error = noise * np.random.default_rng(clean.query.shape[0]).standard_normal(clean.matrix.shape)
    matrix = np.maximum(clean.matrix + error, 0)
    return tv.Mechanism(
        matrix / matrix.sum(axis=1, keepdims=True), clean.query, clean.exact_epsilon
    )


def seconds_at(size: int, repeat: int) -> dict[str, float]:
    """Processor seconds of the three steps on `size` answers at epsilon 0.5."""
    clean = tv.geometric(tv.Query.count(size - 1), 0.5)
    noisy = disturbed(clean, 1e-9)
    first, certified = timed(lambda: tv.certify(clean), repeat, time.process_time)
    second, _ = timed(lambda: tv.certify(noisy), repeat, time.process_time)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "mechanism.json"
        certified.save(file)
        third, _ = timed(lambda: tv.verify(file), repeat, time.process_time)
    return dict(zip(STEPS, (first, second, third), strict=True))


def cell(form: str, upper: int, epsilon: float, noise: float) -> dict[str, Any]:
    clean = getattr(tv, form)(tv.Query.count(upper), epsilon)
    found: dict[str, Any] = {"form": form, "upper": upper, "epsilon": epsilon, "noise": noise}
    try:
        loss = tv.certify(disturbed(clean, noise)).certificate["loss"]
    except tv.CertificationError as refused:
        return {**found, "refused": str(refused)}
    reference = clean.expected_loss()
    return {
        **found,
        "against_clean": loss["after"] / reference - 1,
        "against_given": loss["after"] / loss["before"] - 1,
        "above_both": loss["after"] / max(reference, loss["before"]) - 1,
        "mass_moved": loss["mass_moved"],
    }


def accuracy_table(rows: list[dict[str, Any]]) -> Table:
    """The worst cell of every closed form and noise level."""
    lines = []
    for form in FORMS:
        for noise in NOISE:
            own = [row for row in rows if (row["form"], row["noise"]) == (form, noise)]
            done = [row for row in own if "refused" not in row]
            worst = [
                f"{max((row[key] for row in done), default=np.nan):.1e}"
                for key in ("against_given", "above_both", "mass_moved")
            ]
            lines.append((form, f"{noise:g}", *worst, f"{len(own) - len(done)} of {len(own)}"))
    columns = (
        "form",
        "noise",
        "error above the matrix handed in",
        "above the worse of it and the clean one",
        "probability moved",
        "refused",
    )
    return Table("Accuracy: the worst cell over ranges and epsilons", columns, lines)


def run(quick: bool) -> Result:
    sizes = (41, 81, 161) if quick else (41, 81, 161, 321, 641, 1001, 2001)
    seconds_at(21, 1)  # imports are not timed
    times = {size: seconds_at(size, 3 if size < 500 else 1) for size in sizes}
    uppers = (10, 40) if quick else (10, 80, 500)
    rows = [
        cell(form, upper, epsilon, noise)
        for upper in uppers
        for form in FORMS
        for epsilon in EPSILONS
        for noise in NOISE
    ]
    barred = [row for row in rows if row["noise"] == 1e-9 and row["upper"] <= WIDEST]
    worst = max(row.get("above_both", np.inf) for row in barred)
    curves = {step: (list(sizes), [times[size][step] for size in sizes]) for step in STEPS}
    time_rows = [[str(size)] + [f"{times[size][step]:.4f}" for step in STEPS] for size in sizes]
    return Result(
        question="What do certification and verification cost?",
        method="Processor seconds on the geometric mechanism of a count at epsilon 0.5; 'after a "
        "solver' adds noise of 1e-9 to the matrix, so that repair has work to do. Verification "
        "reads the file and checks every neighbour pair in integers. Errors are relative "
        "increases of the expected absolute error.",
        tables=[Table("Seconds", ("answers", *STEPS), time_rows), accuracy_table(rows)],
        bars=[
            Bar(
                f"noise 1e-9, up to {WIDEST + 1} answers: less than {BAR:g} of accuracy lost",
                f"{worst:.1e}",
                bool(worst < BAR),
            )
        ],
        plots=[Plot("Certification and verification", "answers", "seconds", curves)],
        exponents={f"{step}, against answers": exponent(*curve) for step, curve in curves.items()},
        raw={"seconds": {str(size): values for size, values in times.items()}, "accuracy": rows},
    )


def main(arguments: list[str] | None = None) -> int:
    given = options(__doc__).parse_args(arguments)
    return conduct("certification", lambda: run(given.quick), given)


if __name__ == "__main__":
    sys.exit(main())
