import math
from decimal import Decimal, getcontext
from fractions import Fraction

import numpy as np
import pytest

import tallyveil as tv
from tallyveil.mechanisms.geometric import exact_geometric


def test_every_private_mechanism_is_dominated_for_every_unimodal_loss(
    solve_private, random_unimodal
):
    """The theorem of docs/theory.md, on vertices of the polytope of private mechanisms."""
    rng = np.random.default_rng(2)
    for _ in range(40):
        n = int(rng.integers(2, 9))
        epsilon = round(float(rng.uniform(0.1, 2.0)), 3)
        _, vertex = solve_private(rng.normal(size=(n, n)), epsilon)
        vertex = np.maximum(vertex, 0.0)
        m = tv.Mechanism(vertex / vertex.sum(axis=1, keepdims=True), tv.Query.count(n - 1), epsilon)
        T = tv.dominating_remap(m)
        assert T.min() >= 0
        assert np.abs(T.sum(axis=1) - 1).max() < 1e-12
        better = tv.geometric(m.query, epsilon).matrix @ T
        for _ in range(5):
            losses = random_unimodal(rng, n)
            gain = ((m.matrix - better) * losses).sum(axis=1)
            assert gain.min() >= -1e-9


def test_the_geometric_mechanism_dominates_itself_by_staying():
    m = tv.geometric(tv.Query.count(7), 0.5)
    assert np.abs(tv.dominating_remap(m) - np.eye(8)).max() < 1e-9


def test_what_is_not_private_enough_is_refused():
    m = tv.geometric(tv.Query.count(4), 2.0)
    with pytest.raises(tv.ArgumentError, match="private at epsilon 1"):
        tv.dominating_remap(m, epsilon=1.0)
    with pytest.raises(tv.ArgumentError, match="one apart"):
        tv.dominating_remap(tv.exponential(tv.Query.maximum(0, 4), 1.0))
    with pytest.raises(tv.ArgumentError, match="states none"):
        tv.dominating_remap(tv.Mechanism(np.eye(2), tv.Query.count(1)))


def test_a_path_stated_as_pairs_is_a_path():
    q = tv.Query.custom(range(4), range(4), [(0, 1), (1, 2), (2, 3)])
    stated, count = tv.fair(q, 1.0), tv.fair(tv.Query.count(3), 1.0)
    assert tv.dominating_remap(stated).tolist() == tv.dominating_remap(count).tolist()
    branched = tv.Query.custom(range(4), range(4), [(0, 1), (1, 2), (1, 3)])
    with pytest.raises(tv.ArgumentError, match="one apart"):
        tv.dominating_remap(tv.Mechanism(stated.matrix, branched, 1.0))


RATIOS = [
    Fraction(999, 1000), Fraction(1, 4), Fraction(1, 10**6), Fraction(1, 2**52),
    Fraction(1, 10**30),
]  # fmt: skip


def exact_log(ratio):
    """The epsilon with e^-epsilon = ratio, to 50 digits."""
    getcontext().prec = 50
    return str(-(Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln())


def fair_in_fractions(size, a):
    """Cormode, Kulkarni and Srivastava (2018), equation 17, as corrected."""
    rows = []
    for i in range(size):
        room = min(i, size - 1 - i)
        steps = (abs(i - j) for j in range(size))
        rows.append([a ** (d if d < room else -(-(d + room) // 2)) for d in steps])
    return [[value / sum(row) for value in row] for row in rows]


def response_in_fractions(size, a):
    """Keep the truth with a probability 1/a times that of any other answer."""
    other = a / (1 + a * (size - 1))
    return [[other / a if i == j else other for j in range(size)] for i in range(size)]


def shift_in_fractions(size, a, by):
    """Geometric noise, then half of the time `by` less and half of the time one less still."""
    rows = []
    for row in exact_geometric(size, a):
        moved = [Fraction(0)] * size
        for r, chance in enumerate(row):
            for down in (by, by + 1):
                moved[min(max(r - down, 0), size - 1)] += chance / 2
        rows.append(moved)
    return rows


def loss_in_fractions(matrix, i, loss):
    return sum(chance * loss(i, j) for j, chance in enumerate(matrix[i]))


LOSSES = {
    "absolute": lambda i, j: abs(i - j),
    "zero_one": lambda i, j: int(i != j),
    "uneven": lambda i, j: 1000 * (j - i) ** 2 if j > i else i - j,
}


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("name", ["geometric", "fair", "response", "down", "up"])
def test_domination_holds_in_fractions_at_every_epsilon(ratio, name):
    """No unimodal loss of G T exceeds that of the exact mechanism by more than rounding."""
    size = 9
    exact = {
        "geometric": exact_geometric,
        "fair": fair_in_fractions,
        "response": response_in_fractions,
        "down": lambda size, a: shift_in_fractions(size, a, 3),
        "up": lambda size, a: shift_in_fractions(size, a, -4),
    }[name](size, ratio)
    m = tv.Mechanism(np.array(exact, dtype=float), tv.Query.count(size - 1), exact_log(ratio))
    T = tv.dominating_remap(m)
    assert T.min() >= 0
    remap = [[Fraction(float(share)) for share in row] for row in T]
    drawn = exact_geometric(size, ratio)
    better = [
        [sum(drawn[i][r] * remap[r][j] for r in range(size)) for j in range(size)]
        for i in range(size)
    ]
    for loss in LOSSES.values():
        for i in range(size):
            limit = loss_in_fractions(exact, i, loss)
            assert loss_in_fractions(better, i, loss) <= limit * (1 + Fraction(1, 10**12))


def test_far_shifts_are_dominated():
    """61 answers, noise moved down by 36 or 37: a cut in the far tail of the geometric noise."""
    ratio = Fraction(math.exp(-1)).limit_denominator(10**6)
    shifted = np.array(shift_in_fractions(61, ratio, 36), dtype=float)
    m = tv.Mechanism(shifted, tv.Query.count(60), exact_log(ratio))
    better = tv.geometric(m.query, exact_log(ratio)).matrix @ tv.dominating_remap(m)
    distance = np.abs(np.subtract.outer(np.arange(61), np.arange(61)))
    before, after = ((matrix * distance).sum(axis=1) for matrix in (shifted, better))
    assert (after <= before * (1 + 1e-12)).all()
