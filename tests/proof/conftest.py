"""An independent judge of privacy: Python integers, and e^epsilon to a hundred digits."""

from collections.abc import Callable, Iterable
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest

Judge = Callable[[list[list[int]], Iterable[tuple[int, int]], Fraction], bool]


def judge(weights: list[list[int]], pairs: Iterable[tuple[int, int]], epsilon: Fraction) -> bool:
    """Whether every weight is at most e^epsilon times its neighbour's, both ways."""
    with localcontext() as context:
        context.prec = 100
        factor = (Decimal(epsilon.numerator) / Decimal(epsilon.denominator)).exp()
        return all(
            first <= factor * second and second <= factor * first
            for i, k in pairs
            for first, second in zip(weights[i], weights[k], strict=True)
        )


@pytest.fixture(scope="session")
def private() -> Judge:
    return judge
