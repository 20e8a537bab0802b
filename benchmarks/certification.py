"""What certification and verification cost, in time and in accuracy.

Time: `tv.certify` (repair, integer weights, exact check) and `tv.verify` (the exact check, from
the file) on the geometric mechanism, and on the same matrix with a solver's noise, which needs
repair. The alternative is NumPy's check of the ratios in floating point, which proves nothing.
Accuracy: for every closed form, range, epsilon and noise level, the expected absolute error
after certification, relative to the larger of those of the clean matrix and the noisy one.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import tallyveil as tv
from benchmarks.harness import Result, Settings, Table, Target, time_best

FORMS = ("geometric", "fair", "exponential", "laplace", "staircase")
EPSILONS = (1e-4, 1e-2, 0.1, 1.0, 5.0, 20.0)
NOISE, JUDGED = (0.0, 1e-9, 1e-7), 1e-9
MOST_LOST, MOST_SECONDS = 1e-5, 1.0
STEPS = ("certify", "certify, after a solver", "verify the file", "NumPy's check")


def disturb(clean: tv.Mechanism, noise: float) -> tv.Mechanism:
    """Build the mechanism as a solver with this absolute tolerance might return it."""
    error = noise * np.random.default_rng(clean.query.shape[0]).standard_normal(clean.matrix.shape)
    matrix = np.maximum(clean.matrix + error, 0)
    matrix /= matrix.sum(axis=1, keepdims=True)
    return tv.Mechanism(matrix, clean.query, clean.exact_epsilon)


def time_steps(size: int) -> list[float]:
    """Measure the four steps on this many answers at epsilon 0.5."""
    repeat = 3 if size < 500 else 1
    clean = tv.geometric(tv.Query.count(size - 1), 0.5)
    noisy = disturb(clean, JUDGED)
    certified = tv.certify(clean)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "mechanism.json"
        certified.save(file)
        steps = (
            lambda: tv.certify(clean),
            lambda: tv.certify(noisy),
            lambda: tv.verify(file),
            lambda: np.abs(np.diff(np.log(clean.matrix), axis=0)).max(),
        )
        return [time_best(step, repeat)[0] for step in steps]


def measure_loss(form: str, upper: int, epsilon: float, noise: float) -> float:
    """Measure by what share certification increases the expected error; NaN where refused."""
    clean = getattr(tv, form)(tv.Query.count(upper), epsilon)
    try:
        loss = tv.certify(disturb(clean, noise)).certificate["loss"]
    except tv.CertificationError:
        return np.nan
    return loss["after"] / max(clean.expected_loss(), loss["before"]) - 1


def run(settings: Settings) -> Result:
    """Measure time against answers, and the accuracy lost."""
    sizes = (41, 161) if settings.quick else (41, 161, 501, 1001, 2001)
    time_steps(21)  # imports are not timed
    times = {size: time_steps(size) for size in sizes}
    rows = []
    for size, seconds in times.items():
        *cells, floor = (f"{spent:.4f}" for spent in seconds)
        rows.append((f"{size:,}", *cells, floor, f"{seconds[2] / seconds[3]:,.0f}"))
    uppers = (10, 40) if settings.quick else (10, 80, 500)
    lost = {
        (form, noise): [
            measure_loss(form, n, epsilon, noise) for n in uppers for epsilon in EPSILONS
        ]
        for form in FORMS
        for noise in NOISE
    }
    accuracy = [
        (
            form,
            f"{noise:g}",
            f"{np.nanmax(values):.1e}",
            f"{np.isnan(values).sum()} of {len(values)}",
        )
        for (form, noise), values in lost.items()
    ]
    worst = max(max(values) for (_, noise), values in lost.items() if noise == JUDGED)
    largest = sizes[-1]
    return Result(
        question="What do certification and verification cost?",
        method="Processor seconds on the geometric mechanism of a count at epsilon 0.5; 'after a "
        "solver' adds noise of 1e-9 to the matrix, so that repair has work to do. Verification "
        "reads the file and checks every neighbour pair in integers; NumPy's check only looks at "
        "ratios of doubles. Errors are relative increases of the expected absolute error.",
        tables=[
            Table("Seconds", ("answers", *STEPS, "verify / NumPy"), rows),
            Table(
                "Accuracy: the worst over ranges and epsilons",
                ("form", "noise", "error above the larger of clean and noisy", "refused"),
                accuracy,
            ),
        ],
        targets=[
            Target.at_most(
                f"noise 1e-9: less than {MOST_LOST:g} of accuracy lost", worst, MOST_LOST
            ),
            Target.at_most(
                f"{largest:,} answers verified in {MOST_SECONDS:g} s",
                times[largest][2],
                MOST_SECONDS,
                " s",
            ),
        ],
    )
