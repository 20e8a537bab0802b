"""Random problems from every query family against a plain program and a second solver.

The plain program is written here from the definitions alone: all cells, all neighbour pairs
in both directions, every property row, nothing folded, windowed or dropped.
"""

import numpy as np
import pytest
from scipy import sparse

import tallyveil as tv
from tallyveil.errors import InfeasibleError
from tallyveil.optimize.problem import DesignOptions, Problem, pose
from tallyveil.optimize.search import solve_problem
from tallyveil.optimize.solver import Program, solve
from tallyveil.properties import PROPERTIES, SEVEN, rows

NORMAL_RUN, LONG_RUN = 36, 500


def plain_program(problem: Problem) -> Program:
    n, m = problem.query.shape
    eye, outputs = sparse.eye_array(n, format="csr"), sparse.eye_array(m)

    def mark(cells):
        place = np.arange(len(cells[0])), cells[0] * m + cells[1]
        return sparse.csr_array((np.ones(len(cells[0])), place), shape=(len(cells[0]), n * m))

    pairs = problem.query.neighbours.pairs
    first, second = np.vstack([pairs, pairs[:, ::-1]]).T
    above = [sparse.kron(eye[first] - problem.growth * eye[second], outputs)]
    limits = [np.zeros(above[0].shape[0])]
    equations, values = [sparse.kron(eye, np.ones((1, m)))], [np.ones(n)]
    for name in problem.properties:
        for part in rows(name, problem.query, float(problem.epsilon)):
            form = -part.factor * mark(part.larger)
            if part.smaller is not None:
                form = form + mark(part.smaller)
            (equations if part.equal else above).append(form)
            (values if part.equal else limits).append(np.full(len(part), -part.floor))
    if problem.least_probability:
        distance = np.abs(problem.query.inputs[:, None] - problem.query.outputs[None, :])
        above.append(-mark(np.nonzero(distance <= distance.min(axis=0) + 1e-9)))
        limits.append(np.full(above[-1].shape[0], -problem.least_probability))
    for marginal in problem.marginals:
        equations.append(sparse.kron(marginal.source[None, :], outputs))
        values.append(marginal.target)
    # further variables: a slack for every privacy row, and the largest loss
    inside, worst = sparse.vstack(above), np.flatnonzero(problem.possible & problem.worst_case)
    slacks, sides = len(limits[0]), len(first)
    losses = sparse.block_diag(list(problem.loss_table[:, None, :]), format="csr")[worst]
    matrix = sparse.block_array(
        [
            [inside, -sparse.eye_array(inside.shape[0], slacks), None],
            [None, sparse.kron(sparse.eye_array(sides), np.ones((1, m))), None],
            [losses, None, -np.ones((len(worst), 1))],
        ]
    )
    right = [*limits, np.full(sides, float(problem.delta)), np.zeros(len(worst))]
    cost = np.zeros(n * m) if problem.worst_case else problem.weights.ravel()
    equal = sparse.vstack(equations)
    return Program(
        np.concatenate([cost, np.zeros(slacks), [float(problem.worst_case)]]),
        sparse.hstack([equal, sparse.csr_array((equal.shape[0], slacks + 1))]),
        np.concatenate(values),
        matrix,
        np.concatenate(right),
        np.arange(n * m + slacks + 1) == n * m + slacks,
    )


def random_query(rng) -> tv.Query:
    size, low = int(rng.integers(2, 9)), int(rng.integers(-3, 3))
    inputs = np.sort(rng.choice(40, size + 1, replace=False))
    outputs = np.sort(rng.choice(40, int(rng.integers(1, 8)), replace=False))
    pairs = [(i, k) for i in range(size + 1) for k in range(i) if rng.random() < 0.4]
    families = (
        lambda: tv.Query.count(size),
        lambda: tv.Query.count(size, categories=float(rng.choice([0.5, 2, 3]))),
        lambda: tv.Query.count(size, extend=2),
        lambda: tv.Query.mean(int(rng.integers(2, 5)), low, low + int(rng.integers(1, 4))),
        lambda: tv.Query.maximum(low, low + size),
        lambda: tv.Query.minimum(low, low + size, categories=2),
        lambda: tv.Query.median(low, low + size),
        lambda: tv.Query.custom(inputs, outputs, "path"),
        lambda: tv.Query.custom(inputs, inputs, pairs or [(0, 1)]),
    )
    return families[rng.integers(len(families))]()


def random_problem(rng) -> Problem:
    query = random_query(rng)
    n, m = query.shape
    losses = [
        "absolute", "squared", "zero_one", ("beyond", 1), ("power", 0.5), rng.random((n, m)),
        np.maximum(query.outputs[None, :] - query.inputs[:, None], 0) + 3.0 * np.maximum(
            query.inputs[:, None] - query.outputs[None, :], 0,
        ),
    ]  # fmt: skip
    options = {"loss": losses[rng.integers(len(losses))]}
    names = PROPERTIES if rng.random() < 0.2 else SEVEN
    options["properties"] = [name for name in names if rng.random() < rng.choice([0.1, 0.4])]
    style = rng.random()
    if style < 0.2:
        options["worst_case"] = True
        if rng.random() < 0.5:
            options["side_information"] = query.inputs[rng.random(n) < 0.7].tolist() or None
    elif style < 0.7:
        prior = rng.dirichlet(np.ones(n))
        prior[rng.random(n) < 0.2] = 0
        options["prior"] = prior if prior.sum() > 0 else None
    if rng.random() < 0.15:
        options["delta"] = round(float(rng.choice([1e-3, 0.05, 0.3])), 3)
    if rng.random() < 0.15 and not options.get("worst_case"):
        options["target"] = rng.dirichlet(np.ones(m))
    elif rng.random() < 0.15 and query.is_square and not options.get("worst_case"):
        options["fixed_point"] = rng.dirichlet(np.ones(n))
    if rng.random() < 0.1:
        options["zero_outputs"] = False
    epsilon = float(rng.choice([0.05, 0.3, 1.0, 2.5]))
    return pose(query, epsilon, DesignOptions(**options))


def check(seed: int) -> None:
    problem = random_problem(np.random.default_rng(seed))
    second = solve(plain_program(problem), "highs")
    found, clash = None, ()
    try:
        found = solve_problem(problem)
    except InfeasibleError as error:
        clash = error.conflict
    if found is None:
        assert second.status == "infeasible"
        assert set(clash) & {"fixed_point", "target"}
        return
    scale = max(1.0, abs(found.objective))
    assert found.bound <= found.objective + 1e-9 * scale  # properties hold to 1e-9
    # relative, but for an optimum of 0, which a solver reaches to its tolerance
    assert found.gap < 1e-6 or found.objective <= 1e-11 * np.abs(problem.loss_table).max()
    if second.status == "optimal":
        # HiGHS may lie below the optimum by its tolerance, never by more
        assert abs(found.objective - second.objective) < 1e-6 * scale
        assert found.bound <= second.objective + 1e-7 * scale
    mechanism = tv.Mechanism(found.matrix, problem.query, problem.epsilon, delta=problem.delta)
    if problem.delta:
        assert mechanism.privacy_profile([mechanism.epsilon])[0] <= problem.delta + 1e-12
    else:
        assert mechanism.realised_epsilon() <= float(problem.epsilon) + 1e-10
    for name in problem.properties:
        assert mechanism.has(name), mechanism.witness(name)
    for marginal in problem.marginals:
        assert np.abs(marginal.source @ found.matrix - marginal.target).max() < 1e-8


@pytest.mark.parametrize("seed", range(NORMAL_RUN))
def test_sample_of_random_problems(seed):
    check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(NORMAL_RUN, LONG_RUN))
def test_the_other_random_problems(seed):
    check(seed)
