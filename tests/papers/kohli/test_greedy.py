"""Algorithms 1 and 2 against exact arithmetic, programs and reference values."""

from fractions import Fraction

import numpy as np
import pytest

import tallyveil as tv
from tallyveil.errors import ArgumentError
from tallyveil.loss import is_monge, loss_table
from tallyveil.papers.kohli.greedy import greedy_run, is_row_wise_concentrating, is_row_wise_convex
from tallyveil.papers.kohli.polytope import is_extreme
from tallyveil.sampling.entropy import SeededNotPrivate

LN2 = "0.693147180559945309417232121458"
GREEDY, OPTIMUM = tv.papers.greedy_fixed_point, tv.papers.unfixed_optimum


def exact_greedy(z, order, growth=Fraction(2)):
    """Algorithm 1 as printed, in Fractions, with the equality test done exactly."""
    n = len(z)
    rows, lacking = [Fraction(1)] * n, list(z)
    matrix = np.full((n, n), Fraction(0), dtype=object)
    steps = 0
    for j in order:
        while lacking[j] > 0:
            pattern = [1 if i < j else -1 for i in range(n - 1)]
            for i in range(n - 1):
                if rows[i + 1] == rows[i] * growth ** -pattern[i]:
                    pattern[i] = -pattern[i]
            scale = [Fraction(1)]
            for step in pattern:
                scale.append(scale[-1] * growth**step)
            limits = [lacking[j] / sum(a * b for a, b in zip(z, scale, strict=True))]
            for i, step in enumerate(pattern):
                if step == 1:
                    slack = growth * scale[i + 1] - scale[i]
                    limits.append((growth * rows[i + 1] - rows[i]) / slack)
                else:
                    slack = scale[i] - scale[i + 1] / growth
                    limits.append((rows[i] - rows[i + 1] / growth) / slack)
            amount = min(limits)
            for i in range(n):
                matrix[i, j] += amount * scale[i]
                rows[i] -= amount * scale[i]
            lacking[j] -= amount * sum(a * b for a, b in zip(z, scale, strict=True))
            steps += 1
    assert all(row == 0 for row in rows)
    return matrix, steps


def sandwich(n):
    return [j for pair in zip(range(n), range(n - 1, -1, -1), strict=True) for j in pair][:n]


@pytest.mark.parametrize("seed", range(8))
def test_agrees_with_exact_arithmetic(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 16))
    weights = rng.integers(0, 50, size=n) * (rng.random(n) < 0.8)
    weights[rng.integers(n)] += 1
    z = [Fraction(int(w), int(weights.sum())) for w in weights]
    for order, selector in ((sandwich(n), "sandwich"), (rng.permutation(n).tolist(), None)):
        exact, steps = exact_greedy(z, order)
        run = greedy_run([float(x) for x in z], LN2, selector or order)
        np.testing.assert_allclose(run.mechanism.matrix, exact.astype(float), atol=1e-12)
        assert steps <= 2 * n - 1  # Theorem 5
        assert run.scales <= 2 * n - 1


@pytest.mark.parametrize("order", ["sandwich", "upwards"])
def test_returns_an_extreme_point(order):
    # Theorem 6, on the exact matrix the float one was just shown to equal
    z = [Fraction(w, 20) for w in (7, 1, 0, 4, 8)]
    columns = sandwich(5) if order == "sandwich" else list(range(5))
    exact, _ = exact_greedy(z, columns)
    assert is_extreme(exact, 2, z)
    run = greedy_run([float(x) for x in z], LN2, columns)
    np.testing.assert_allclose(run.mechanism.matrix, exact.astype(float), atol=1e-13)


def binomial(n):
    from scipy.stats import binom

    shares = binom.pmf(np.arange(n), n - 1, 0.5)
    return shares / shares.sum()


def hard_distributions():
    rng = np.random.default_rng(0)
    tail = np.zeros(300)
    tail[:5] = 0.2
    gaps = np.zeros(200)
    gaps[[0, 80, 81, 199]] = [0.7, 1e-12, 0.3 - 2e-12, 1e-12]
    return {
        "binomial 100": (binomial(100), LN2), "binomial 400": (binomial(400), LN2),
        "long empty tail": (tail, 1.0), "gaps": (gaps, 0.5),
        "sparse": (rng.dirichlet(np.full(300, 0.05)), 2.0),
        "flat, small epsilon": (np.full(300, 1 / 300), 0.001), "one count": (np.eye(40)[17], 0.3),
        "large epsilon": (rng.multinomial(3000, np.full(150, 1 / 150)) / 3000, 20),
        "very large epsilon": (rng.multinomial(3000, np.full(150, 1 / 150)) / 3000, 36.7),
    }  # fmt: skip


@pytest.mark.parametrize("selector", ["max", "min", "sandwich"])
@pytest.mark.parametrize("name", hard_distributions())
def test_feasible_and_certifiable_where_plain_floats_break(name, selector):
    z, epsilon = hard_distributions()[name]
    found = tv.papers.greedy_fixed_point(z, epsilon, selector)
    assert np.abs(found.matrix.sum(axis=1) - 1).max() <= 1e-9
    assert np.abs(z @ found.matrix - z).max() <= 1e-9
    certified = tv.certify(found, target=z, prior=z)
    assert certified.verify().ok
    assert certified.certificate["loss"]["mass_moved"] < 1e-9
    best = tv.transport(found.query, found.exact_epsilon, z)
    assert found.expected_loss("absolute", z) >= best.expected_loss("absolute", z) - 1e-9


def test_selectors_choose_the_columns():
    z = [0.1, 0.4, 0.2, 0.3]
    assert greedy_run(z, 1.0, "max").order[:2] == (1, 3)
    assert greedy_run(z, 1.0, "min").order[:2] == (0, 2)
    assert greedy_run(z, 1.0, "sandwich").order == (0, 3, 1, 2)
    assert greedy_run(z, 1.0, [2, 0, 1, 3]).order == (2, 0, 1, 3)
    assert greedy_run([0.5, 0.0, 0.5], 1.0, "sandwich").order == (0, 2)
    one, other = (
        greedy_run(np.full(30, 1 / 30), 1.0, "random", entropy=SeededNotPrivate(3)).order
        for _ in range(2)
    )
    assert sorted(one) == list(range(30))
    assert one == other != tuple(range(30))


def test_custom_selector_sees_what_is_lacking():
    seen = []

    def most_lacking(z, r, c, A):
        seen.append((r.copy(), c.copy(), A.sum(axis=1)))
        return int(c.argmax())

    z = np.array([0.1, 0.4, 0.2, 0.3])
    found = tv.papers.greedy_fixed_point(z, 1.0, most_lacking)
    np.testing.assert_allclose(z @ found.matrix, z, atol=1e-14)
    for lacking_rows, lacking_columns, filled in seen:
        np.testing.assert_allclose(lacking_rows + filled, 1, atol=1e-12)
        assert z @ lacking_rows == pytest.approx(lacking_columns.sum(), abs=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: GREEDY([0.5, 0.6], 1.0), "'z' must sum to one"),
        (lambda: GREEDY([1.5, -0.5], 1.0), "'z' must be finite and non-negative"),
        (lambda: GREEDY([0.5, 0.5], 1.0, "median"), "'selector' must be one of max, min"),
        (lambda: GREEDY([0.5, 0.5], 1.0, [0, 0]), r"list each of the columns 0\.\.1 once"),
        (lambda: GREEDY([0.5, 0.0, 0.5], 1.0, lambda z, r, c, A: 1), r"c\[j\] > 0"),
        (lambda: GREEDY([1.0], 1.0), "at least 2 entries"),
        (lambda: tv.papers.best_fixed_point([0.5, 0.5], 1.0, selectors=()), "at least one"),
        (lambda: OPTIMUM([0.5, 0.5], 1.0, [[1.0, 0.0], [0.0, 1.0]]), "grow with the distance"),
        (lambda: OPTIMUM([0.5, 0.6], 1.0), "'z' must sum to one"),
        (lambda: OPTIMUM([1.0], 1.0), "at least 2 entries"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()


def test_best_of_several_is_the_cheapest():
    z = [0.5, 0.25, 0.125, 0.0625, 0.0625]
    best = tv.papers.best_fixed_point(z, LN2)
    costs = [
        tv.papers.greedy_fixed_point(z, LN2, name).expected_loss("absolute", z)
        for name in ("max", "min", "sandwich")
    ]
    assert best.expected_loss("absolute", z) == min(costs)


LOSSES = [
    "absolute", "squared", "zero_one", ("beyond", 2), ("power", 0.5),
    lambda true, released: np.where(released > true, 3 * (released - true), true - released),
]  # fmt: skip


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(4))
def test_no_private_mechanism_is_cheaper(loss, seed, solve_private):
    # Theorem 8, and beyond it every Monge loss
    rng = np.random.default_rng(seed)
    n, epsilon = int(rng.integers(2, 10)), float(rng.choice([0.2, 1.0, 2.0]))
    z = rng.dirichlet(np.full(n, 0.6))
    found = tv.papers.unfixed_optimum(z, epsilon, loss)
    cost = loss_table(found.query, loss)
    best, _ = solve_private(z[:, None] * cost, epsilon)
    assert found.expected_loss(loss, z) == pytest.approx(best, rel=1e-7, abs=1e-9)
    assert found.realised_epsilon() <= epsilon * (1 + 1e-9)


def test_mass_far_from_every_draw_does_not_stop_the_walk():
    # with sums that underflow to 0 the first tie would hold every column at 0
    z = np.zeros(900)
    z[899] = 1.0
    found = tv.papers.unfixed_optimum(z, 2.0)
    assert found.expected_loss("absolute", z) == pytest.approx(0, abs=1e-12)
    np.testing.assert_allclose(found.matrix[:, 899], 1)


def weigh_sides(true, released):
    """Twice the error above the truth."""
    return np.where(released > true, 2 * (released - true), true - released)


@pytest.mark.parametrize(
    ("loss", "concentrating", "convex", "monge"),
    [("absolute", True, True, True), ("squared", True, True, True),
     ("zero_one", True, False, False), (("power", 0.5), True, False, False),
     (weigh_sides, False, True, True)],
)  # fmt: skip
def test_testers(loss, concentrating, convex, monge):
    table = loss_table(tv.Query.count(5), loss)
    assert is_row_wise_concentrating(table) is concentrating
    assert is_row_wise_convex(table) is convex
    assert is_monge(table) is monge
