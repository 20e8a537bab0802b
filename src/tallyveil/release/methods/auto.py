"""Method auto: preserve or geometric, whichever is predicted to be more accurate.

The predictions look at public sizes only: rows, range and epsilon. Their constants were fitted
to some 12,000 releases of tables of five laws, whose counts have a mean of 1.5, 2 or about a
twentieth of the range, with 30 to 10,000 rows, ranges from 8 to 20,000 and epsilon from 0.1 to 4.
The mean ratio over the five laws is met within a tenth (single counts), a quarter (distribution)
and a fifth (sums); single tables differ from it by more. Where counts fill a wide range evenly,
`geometric` is better and must be asked for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from tallyveil.errors import numbered
from tallyveil.release.column import NO_UPPER
from tallyveil.release.methods.base import LIMITED_KEYS, Method, Task
from tallyveil.release.methods.geometric import Geometric
from tallyveil.release.methods.preserve import Preserve

GROUP = 30
"""How many rows the groups have whose sums are compared."""

FEWEST_ROWS = 20
"""Fewer rows do not tell how their counts are distributed."""

WIDEST = 2000
"""Of a wider range the rest is taken to be empty, or nearly so."""


@dataclass(frozen=True)
class Prediction:
    """Errors of `preserve`, each as a multiple of that of `geometric`.

    `cells` is the mean error of single counts, `distribution` the distance of the distributions
    (W1), `groups` the root mean squared error of sums over 30 rows.
    """

    cells: float
    distribution: float
    groups: float

    @property
    def prefers_preserve(self) -> bool:
        """True if the product of the three is below 1."""
        return self.cells * self.distribution * self.groups < 1

    def __str__(self) -> str:
        return (
            f"cells {self.cells:.2f}, distribution {self.distribution:.2f}, "
            f"totals of {GROUP} rows {self.groups:.2f}"
        )


def predict(rows: int, upper: int, epsilon: Fraction) -> Prediction:
    """Predict the errors of `preserve` against those of `geometric`, from public sizes.

    With s = 1/sinh(epsilon), the error of plain noise, N rows and U possible counts, at most 2,001,
    each is c/(1 + k N^a U^-b s^d): alike where there is little noise, and the smaller the more
    noise there is for the range.

    >>> print(predict(3000, 2000, Fraction(1)))
    cells 1.10, distribution 0.59, totals of 30 rows 0.95
    """
    plain = 1 / math.sinh(min(float(epsilon), 700.0))
    size = min(upper, WIDEST) + 1
    shape = 0.043 * rows**0.78 * size**-0.42 * plain**0.83
    summed = 1.24 * rows**0.063 * size**-0.375 * plain**0.71
    cells = 1.13 / (1 + 0.36 * size**-0.32 * plain**0.93)
    return Prediction(cells, 1.06 / (1 + shape), 1.05 / (1 + summed))


def choose_method(rows: int | None, upper: int, epsilon: Fraction) -> tuple[str, str]:
    """Choose the method for `auto` from public sizes alone, and say why.

    >>> choose_method(1000, 40, Fraction(1))[0], choose_method(50, 40, Fraction(1))[0]
    ('preserve', 'preserve')
    """
    if rows is None:
        steps = (m * 10**e for e in range(1, 30) for m in (2, 5, 10))
        least = next(n for n in steps if predict(n, upper, epsilon).prefers_preserve)
        return "preserve", f"chosen automatically, assuming at least {least:,} rows"
    if rows < FEWEST_ROWS:
        return (
            "geometric",
            f"chosen automatically: {numbered(rows, 'row')} cannot show a distribution",
        )
    prediction = predict(rows, upper, epsilon)
    name = "preserve" if prediction.prefers_preserve else "geometric"
    of, product = ("", "below") if name == "preserve" else (" of preserve", "not below")
    return name, (
        f"chosen automatically: predicted error{of} relative to geometric noise, assuming mostly "
        f"small counts: {prediction} (product {product} 1)"
    )


class Auto(Method, frozen=True, tag="auto"):
    """Take preserve or geometric by public sizes: rows, range and epsilon."""

    widest: ClassVar[int] = NO_UPPER
    takes: ClassVar[tuple[str, ...]] = LIMITED_KEYS
    offers_unbiased: ClassVar[bool] = True

    def choose(self, task: Task, why: str) -> tuple[Method, str]:
        """Choose the method that is predicted to be more accurate, and say why."""
        name, reason = choose_method(task.rows, task.upper, task.epsilon)
        method = Preserve if name == "preserve" else Geometric
        return method(unbiased=self.unbiased), reason
