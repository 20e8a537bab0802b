"""What thousands of answers cost a reader: ladders, minimax responses, interpretations.

Ladders of three levels are compared with solving for each step's matrix in NumPy, interpretation
with the posterior that NumPy computes from the matrix, and minimax responses with HiGHS on the
program of Gupte and Sundararajan (2010), section 2.5, over all private mechanisms.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy import sparse

import tallyveil as tv
from benchmarks.harness import Result, Settings, Table, Target, pose_program, time_best
from tallyveil.loss import loss_table
from tallyveil.optimize.solver import Program, solve

LADDERS = (("2", "1", "0.5"), ("1", "0.5", "0.25"), ("0.1", "0.05", "0.01"))
RESPONSES = (("0.1", "absolute"), ("0.1", "squared"), ("0.01", "absolute"))
MOST_SECONDS, MOST_READING, MOST_GAP, FASTER = 5.0, 0.2, 1e-7, 5.0


def solve_ladder(query: tv.Query, epsilons: tuple[str, ...]) -> None:
    """Solve for the matrix from each level to the next, in floating point."""
    levels = [tv.geometric(query, epsilon).matrix for epsilon in epsilons]
    for upper, lower in pairwise(levels):
        np.linalg.solve(upper, lower)


def average_posterior(mechanism: tv.Mechanism, released: np.ndarray) -> np.ndarray:
    """Compute the mean of the posterior of every released value, with a uniform prior."""
    posterior = mechanism.matrix / mechanism.matrix.sum(axis=0)
    return (np.arange(len(posterior)) @ posterior)[released]


def pose_private(n: int, epsilon: float, losses: np.ndarray) -> Program:
    """Minimise the largest expected loss over all epsilon-private mechanisms of a count."""
    sums, ratios = pose_program(n, epsilon)
    by_truth = sparse.block_diag([row[None, :] for row in losses])
    worst = sparse.hstack([by_truth, -np.ones((n, 1))])
    above = sparse.vstack([sparse.hstack([ratios, sparse.csr_array((2 * n * (n - 1), 1))]), worst])
    sums = sparse.hstack([sums, sparse.csr_array((n, 1))])
    cost = np.zeros(n * n + 1)
    cost[-1] = 1.0
    return Program(cost, sums.tocsc(), np.ones(n), above.tocsc(), np.zeros(above.shape[0]))


def run(settings: Settings) -> Result:
    """Measure every step."""
    quick = settings.quick
    tv.Consumer("absolute").respond(tv.geometric(tv.Query.count(4), 1))  # imports are not timed
    rows, targets = [], []

    def add(step: str, seconds: float, limit: float, other: float | None = None) -> None:
        ratio = "" if other is None else f"{other / seconds:.2f}"
        rows.append((step, f"{seconds:.3f}", "" if other is None else f"{other:.3f}", ratio))
        targets.append(Target.at_most(f"{step}: under {limit:g} s", seconds, limit, " s"))

    answers = 101 if quick else 2001
    query = tv.Query.count(answers - 1)
    for epsilons in LADDERS:
        seconds, ladder = time_best(lambda: tv.Ladder(query, epsilons))  # noqa: B023
        other, _ = time_best(lambda: solve_ladder(query, epsilons))  # noqa: B023
        if not ladder.verify():
            raise RuntimeError("A ladder must verify.")
        add(f"ladder {', '.join(epsilons)}, {answers:,} answers", seconds, MOST_SECONDS, other)
    gap, answers = 0.0, 101 if quick else 1001
    for epsilon, loss in RESPONSES:
        mechanism = tv.geometric(tv.Query.count(answers - 1), epsilon)
        seconds, response = time_best(lambda: tv.Consumer(loss).respond(mechanism))  # noqa: B023
        gap = max(gap, response.certificate.gap / response.loss)
        add(f"minimax, {loss}, epsilon {epsilon}, {answers:,} answers", seconds, MOST_SECONDS)
    values, mechanism = 10**5 if quick else 10**6, tv.geometric(tv.Query.count(80), 1.0)
    released = np.random.default_rng(3).integers(0, 81, values)
    tv.interpret(mechanism, released[:100])
    seconds, _ = time_best(lambda: tv.interpret(mechanism, released), 3)
    other, _ = time_best(lambda: average_posterior(mechanism, released), 3)
    add(f"interpret {values:,} values", seconds, MOST_READING, other)

    small = 21 if quick else 41
    mechanism = tv.geometric(tv.Query.count(small - 1), 0.5)
    seconds, response = time_best(lambda: tv.Consumer("absolute").respond(mechanism), 3)
    program = pose_private(small, 0.5, loss_table(mechanism.query, "absolute"))
    other, solution = time_best(lambda: solve(program, backend="highs"))
    difference = abs(response.loss - solution.objective)
    add(f"minimax, absolute, epsilon 0.5, {small} answers", seconds, MOST_SECONDS, other)
    return Result(
        question="What do thousands of answers cost a reader?",
        method="Processor seconds of each step. The alternatives compute less: NumPy solves for "
        "a ladder's matrices and averages posteriors in floating point, without proof or "
        "intervals; HiGHS solves the program over all private mechanisms.",
        tables=[Table("Seconds", ("step", "tallyveil", "alternative", "ratio"), rows)],
        targets=[
            *targets,
            Target.at_most("certified gaps of responses below 1e-7", gap, MOST_GAP),
            Target.at_most("the same optimum as HiGHS to 1e-6", difference, 1e-6),
            Target.at_least(
                f"{FASTER:g} times the speed of HiGHS at {small} answers", other / seconds, FASTER
            ),
        ],
    )
