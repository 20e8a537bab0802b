"""The split of epsilon between the distribution and the counts.

The rules look only at epsilon, the number of rows and the range, which are public, so that
choosing a split costs no privacy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from tallyveil.errors import ArgumentError
from tallyveil.exact import Epsilon, exact_epsilon, exact_rational

RULES = ("predicted", "paper")
SHARES = tuple(Fraction(part, 100) for part in range(61))
"""The shares of the distribution that are compared."""

Tradeoff: TypeAlias = Fraction | str
"""The worth of one unit of distribution error in errors of single counts, or `PLAIN`."""

PLAIN = "plain"
"""The tradeoff at which single counts err as much as plain noise would, and no more."""

WEIGHT = 0.5
"""By default two per cent of the distance are worth one per cent of the counts' error."""

LEAST_SHARE = Fraction(8, 100)
"""By default no smaller share is spent: tables of a few atoms, which are not smooth, need it."""

LARGEST_PLAIN_SHARE = 0.12
FEWEST_ROWS = 5
"""Fewest rows for each possible count at which the distribution is worth a share."""

MANY_ROWS = 100
"""Fewest rows for each possible count at which draws alone tell the distribution smoothly."""

MOST_IN_USE = 100
"""Of a wider range about this number of cells is taken to be in use."""

LEAST_FITTED = 0.1
"""The smallest epsilon that predictions were fitted to."""

LEAST_TOTALS = 16 * math.sqrt(2)
"""Rows times the distribution's epsilon at which four deviations of a total are N/4 rows."""


@dataclass(frozen=True)
class Split:
    """The two exact budgets; they add up to the whole one. `epsilon1` is 0 without stage one."""

    epsilon1: Fraction
    epsilon2: Fraction
    rule: str

    @classmethod
    def at(cls, epsilon: Fraction, share: Fraction, rule: str) -> Split:
        """Give the distribution a share of epsilon."""
        return cls(epsilon * share, epsilon * (1 - share), rule)

    @property
    def epsilon(self) -> Fraction:
        """The cost of both stages together."""
        return self.epsilon1 + self.epsilon2


def rule_of_thumb(epsilon: float) -> float:
    """Return the distribution's share of the budget (Kohli and Laskowski 2026, section 6).

    f = 0.106 + 0.533 exp(-2.87 epsilon)

    >>> round(rule_of_thumb(0.48), 6)
    0.240414
    """
    return 0.106 + 0.533 * math.exp(-2.87 * epsilon)


def split_budget(
    epsilon: Epsilon, rule: str | Epsilon = "predicted", *, records: int, size: int
) -> Split:
    """Divide `epsilon` between the distribution (epsilon1) and the counts (epsilon2).

    Parameters
    ----------
    epsilon : the whole budget
    rule : ``"predicted"`` (default): the share with the least predicted error of single counts
        times the square root of the predicted distance, so that two per cent of the distance are
        worth one per cent of the error; at most the paper's share, so that no count is drawn
        with less than in the paper's pipeline, unless only a larger one tells anything, and
        at least 0.08 or nothing;
        ``"paper"``: the paper's share; or a number f in [0, 1)
    records : the number of rows N, public
    size : the number of possible counts n = upper + 1 (or of cells), public

    Shares are whole hundredths, the paper's rounded to six decimals: short exact numbers.

    Examples
    --------
    >>> s = split_budget(1, "0.25", records=100, size=10)
    >>> s.epsilon1, s.epsilon2
    (Fraction(1, 4), Fraction(3, 4))
    >>> split_budget("1/2", records=3136, size=51).epsilon1
    Fraction(21, 200)
    """
    total = exact_epsilon(epsilon)
    if rule == "predicted":
        return Split.at(total, _least_product(total, records, size), "predicted")
    if rule == "paper":
        share = Fraction(round(rule_of_thumb(float(total)) * 10**6), 10**6)
        return Split.at(total, share, "paper")
    if isinstance(rule, str) and not any(symbol.isdigit() for symbol in rule):
        raise ArgumentError("split", f"be one of {', '.join(RULES)}, or a number in [0, 1)", rule)
    share = exact_rational(rule, "split")
    if not 0 <= share < 1:
        hint = "It is the distribution's share of the budget; the counts need some."
        raise ArgumentError("split", "lie in [0, 1)", rule, hint)
    return Split.at(total, share, "explicit")


def rows_tell(epsilon: Epsilon, records: int, size: int) -> bool:
    """Return whether rows drawn at `epsilon` tell a hierarchy's distribution without a share.

    From max(2, ln(records/size) - 1.2) on, as measured on releases with sums.
    """
    return float(exact_epsilon(epsilon)) >= max(2.0, math.log(records / size) - 1.2)


def _least_product(epsilon: Fraction, records: int, size: int) -> Fraction:
    """Find the share with the least predicted error times the root of the predicted distance."""

    def predict(share: Fraction) -> float:
        distance = predict_distance(float(epsilon), float(share), records, size)
        return predict_error(float(epsilon * (1 - share))) * math.pow(distance, WEIGHT)

    none, *shares = _list_shares(float(epsilon), records, size)
    shares = [share for share in shares if share >= LEAST_SHARE]
    most = rule_of_thumb(float(epsilon))
    within = [share for share in shares[1:] if share <= most]
    return min([none, *shares[:1], *within], key=predict)


def _list_shares(epsilon: float, records: int, size: int) -> tuple[Fraction, ...]:
    """List 0, and the shares that tell something of the distribution, from the smallest on.

    The smooth estimate needs five rows for each cell, and more rows outside the fullest cell than
    four standard deviations sqrt(2)/epsilon1 of a total: a quarter of all rows is allowed for.
    """
    if records < FEWEST_ROWS * _count_in_use(size):
        return SHARES[:1]
    least = LEAST_TOTALS / (records * epsilon)
    return (*SHARES[:1], *(share for share in SHARES[1:] if share >= least))


def _count_in_use(size: int) -> int:
    return min(size, MOST_IN_USE)


def choose_split(tradeoff: Tradeoff | None, epsilon: Epsilon, *, records: int, size: int) -> Split:
    """Split the budget of the method preserve: for a tradeoff, or as predicted without.

    Parameters
    ----------
    tradeoff : how much error of single counts one unit of distribution error is worth, or `PLAIN`
    epsilon : the whole budget
    records, size : the numbers of rows and of possible counts (or cells), public

    >>> choose_split(Fraction(1), "1/2", records=3136, size=51).epsilon1
    Fraction(1, 100)
    >>> float(choose_split(PLAIN, "1/2", records=3136, size=51).epsilon1)
    0.0165
    """
    if tradeoff is None:
        return split_budget(epsilon, records=records, size=size)
    total = exact_epsilon(epsilon)
    if isinstance(tradeoff, str):
        return Split.at(total, _find_plain_share(total, records, size), PLAIN)
    worth = float(tradeoff)

    def predict(share: Fraction) -> float:
        distance = predict_distance(float(total), float(share), records, size)
        return predict_error(float(total * (1 - share))) + worth * distance

    share = min(_list_shares(float(total), records, size), key=predict)
    return Split.at(total, share, "tradeoff")


def _find_plain_share(epsilon: Fraction, records: int, size: int) -> Fraction:
    """Find the share with which counts matched to ranks err about as much as plain noise.

    Drawing at (1 - f) epsilon costs them epsilon coth(epsilon) f of their error, and assigning them
    by rank gains some of it back: least where counts spread widely. On the table of teachers
    in schools it gains 0.02 epsilon^-0.85 for small epsilon, and nothing is left to spend from
    epsilon 2 on. So f = 0.0225 epsilon^-1.85 tanh(epsilon) (1 - (epsilon/2)^1.5), at most 0.12.
    From epsilon 2 on, and with fewer than 5 rows for each possible count, the draws alone tell the
    distribution.
    """
    if epsilon >= 2 or records < FEWEST_ROWS * size:
        return Fraction(0)
    fitted = 0.0225 * math.pow(float(epsilon), -1.85) * math.tanh(epsilon)
    fitted *= 1 - float(epsilon / 2) ** 1.5
    return Fraction(round(1000 * min(fitted, LARGEST_PLAIN_SHARE)), 1000)


def predict_error(epsilon: float) -> float:
    """Predict the mean absolute error of matched counts from draws at `epsilon`.

    That of plain noise, 2a/(1 - a^2), times 1/(1 + 0.45 epsilon^(-2/3)), the usual gain from
    knowing the distribution: measured on five tables, within a factor of two.
    """
    return _plain_error(epsilon) / (1 + 0.45 * math.pow(epsilon, -2 / 3))


def predict_distance(epsilon: float, share: float, records: int, size: int) -> float:
    """Predict the distance of the estimated distribution that gets `share` of epsilon.

    With R rows for each of at most 100 cells and s the error of plain noise, it is
    0.28 R^-0.3 s^(2/3) (1 + f (R sqrt(epsilon s) + e^-2)/12)^(-3/4), e = epsilon, but at least 0.1:
    what the draws tell under a smooth distribution, and what a share f for the totals adds.
    Draws alone have 0.44 R^(-1/3) s^0.8 where R is below 100, too few for a smooth estimate.
    Measured on the same tables and parts of them.
    """
    rows, plain = records / _count_in_use(size), _plain_error(epsilon)
    if not share and rows < MANY_ROWS:
        return 0.44 * math.pow(rows, -1 / 3) * math.pow(plain, 0.8)
    drawn = 0.28 * math.pow(rows, -0.3) * math.pow(plain, 2 / 3)
    gain = share * (rows * math.sqrt(epsilon * plain) + max(epsilon, LEAST_FITTED) ** -2) / 12
    return drawn * math.pow(1 + gain, -3 / 4)


def _plain_error(epsilon: float) -> float:
    """Return the mean absolute value of geometric noise, 2a/(1 - a^2) = 1/sinh(epsilon)."""
    return 1 / math.sinh(min(epsilon, 700.0))
