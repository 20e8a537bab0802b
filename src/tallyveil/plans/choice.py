"""Which method `auto` takes: the errors predicted for `preserve` and `geometric` are compared.

The predictions look at public sizes only: rows, range and epsilon. Their constants were fitted
to releases of generated tables whose counts are mostly small, as counts of people in many cells
are, with 30 to 3,000 rows, ranges to 20 and to 2,000 and epsilon from 0.1 to 2. Where counts
fill the whole range evenly, `geometric` is better and must be asked for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

__all__ = ["Prediction", "choose_method", "predict"]

GROUP = 30
"""How many rows the groups have whose sums are compared."""


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
        """Whether the three, which count alike, are below 1 taken together."""
        return self.cells * self.distribution * self.groups < 1

    def __str__(self) -> str:
        return (
            f"single counts {self.cells:.2f}, distribution {self.distribution:.2f}, "
            f"sums of {GROUP} rows {self.groups:.2f}"
        )


def predict(rows: int, upper: int, epsilon: Fraction) -> Prediction:
    """The errors of `preserve` against those of `geometric`, for these public sizes.

    The distribution is learned from all rows, so its error falls with 1/sqrt(rows), and what is
    lost in the tail with 1/rows; clamped noise moves small counts up however many there are.

    >>> print(predict(3000, 2000, Fraction(1)))
    single counts 1.15, distribution 0.14, sums of 30 rows 0.76
    """
    rate = float(epsilon)
    known, tail = math.sqrt(rate / rows), math.log1p(upper * rate) / (rows * rate)
    distribution = 7 * known + 4 * tail
    cells = 1.15 * min(1.0, (2 * rate) ** 0.35) + 0.7 * max(0.0, distribution - 1)
    groups = math.hypot(min(1.0, 0.75 * rate**0.3), distribution)
    return Prediction(cells, distribution, groups)


def choose_method(rows: int | None, upper: int, epsilon: Fraction) -> tuple[str, str]:
    """The method for `auto`, and why; looks at public sizes only.

    >>> choose_method(1000, 40, Fraction(1))[0], choose_method(50, 40, Fraction(1))[0]
    ('preserve', 'geometric')
    """
    if rows is None:
        steps = (m * 10**e for e in range(1, 30) for m in (1, 2, 5))
        least = next(n for n in steps if predict(n, upper, epsilon).prefers_preserve)
        return "preserve", f"assuming at least {least:,} rows, from where it is predicted better"
    found = predict(rows, upper, epsilon)
    name = "preserve" if found.prefers_preserve else "geometric"
    against = f"its errors are predicted at these multiples of geometric noise's: {found}"
    if name == "geometric":
        against = f"the errors of preserve are predicted at these multiples of its own: {found}"
    return name, f"for {rows:,} rows, mostly with small counts, {against}"
