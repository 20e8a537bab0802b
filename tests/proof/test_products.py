from fractions import Fraction

import numpy as np
import pytest

from tallyveil.neighbours import Neighbours
from tallyveil.proof.products import exact_product, ratio_holds


@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 3, 4), (20, 33, 7), (5, 300, 5)])
@pytest.mark.parametrize("bits", [10, 62, 200])
def test_products_equal_python_s_own(shape, bits):
    rng = np.random.default_rng(1)
    n, inner, m = shape
    whole = [
        [int.from_bytes(rng.bytes(bits // 8 + 1)) % 2**bits for _ in range(inner)] for _ in range(n)
    ]
    left = np.array(whole, dtype=object).reshape(n, inner)
    right = rng.integers(0, 2**62, size=(inner, m))
    assert (exact_product(left, right) == left @ right.astype(object)).all()


def test_one_unit_too_much_is_seen():
    """e = 2.718281828459045235...: 2718281828459045235 fits beside 10^18, one more does not."""
    small = 10**18
    for top, holds in ((2718281828459045235, True), (2718281828459045236, False)):
        law = np.array([[top, 1], [small, 1]], dtype=object)
        assert ratio_holds(law, Neighbours.path(2), Fraction(1)) is holds
        assert ratio_holds(law[::-1], Neighbours.path(2), Fraction(1)) is holds
        assert ratio_holds(law, Neighbours.complete(2), Fraction(1)) is holds


def test_a_zero_beside_a_positive_is_not_private():
    law = np.array([[0, 2], [1, 1]], dtype=object)
    assert not ratio_holds(law, Neighbours.path(2), Fraction(100))
