"""How much of the budget the distribution gets, and how much the counts.

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

__all__ = [
    "PLAIN",
    "Split",
    "Tradeoff",
    "choose_split",
    "predict_distance",
    "predict_error",
    "rule_of_thumb",
    "split_at_plain",
    "split_budget",
    "split_for_tradeoff",
]

RULES = ("combined", "paper", "distribution_first")
SHARES = tuple(Fraction(part, 100) for part in range(61))
"""The shares of the distribution that a tradeoff chooses from."""

Tradeoff: TypeAlias = Fraction | str
"""What one unit of distribution error is worth in errors of single counts, or `PLAIN`."""

PLAIN = "plain"
"""The tradeoff at which single counts err as much as plain noise would, and no more."""

LARGEST_PLAIN_SHARE = 0.12
FEWEST_ROWS = 5
"""Rows for each possible count from which the distribution is worth a share at `PLAIN`."""


@dataclass(frozen=True)
class Split:
    """The two exact budgets; they add up to the whole one. `epsilon1` is 0 without stage one."""

    epsilon1: Fraction
    epsilon2: Fraction
    rule: str

    @property
    def epsilon(self) -> Fraction:
        """What both stages cost together."""
        return self.epsilon1 + self.epsilon2


def rule_of_thumb(epsilon: float) -> float:
    """The share of the budget for the distribution (Kohli and Laskowski 2026, section 6).

    f = 0.106 + 0.533 exp(-2.87 epsilon)

    >>> round(rule_of_thumb(0.48), 6)
    0.240414
    """
    return 0.106 + 0.533 * math.exp(-2.87 * epsilon)


def split_budget(
    epsilon: Epsilon, rule: str | Epsilon = "combined", *, records: int, size: int
) -> Split:
    """Divide `epsilon` between the distribution (epsilon1) and the counts (epsilon2).

    Parameters
    ----------
    epsilon : the whole budget
    rule : ``"combined"`` (default): 0.85 times the paper's share while epsilon <
        max(2, ln(records/size) - 1.2), above it nothing, since the counts alone then tell the
        distribution well enough; a little less than the paper's because the counts help to
        estimate the distribution here;
        ``"distribution_first"``: clip(0.9 - 0.03 size epsilon, 0.5, 0.8) below the same
        threshold, which lowers the distribution's error and raises the counts';
        ``"paper"``: the paper's share always; or a number f in [0, 1)
    records : the number of rows N, public
    size : the number of possible counts n = upper + 1, public

    Shares are rounded to six decimals so that the budgets are short exact numbers.

    Examples
    --------
    >>> s = split_budget(1, "0.25", records=100, size=10)
    >>> s.epsilon1, s.epsilon2
    (Fraction(1, 4), Fraction(3, 4))
    """
    whole = exact_epsilon(epsilon)
    if isinstance(rule, str) and rule in RULES:
        share = Fraction(round(_share(float(whole), rule, records, size) * 10**6), 10**6)
        return Split(whole * share, whole * (1 - share), rule)
    if isinstance(rule, str) and not any(symbol.isdigit() for symbol in rule):
        raise ArgumentError("split", f"be one of {', '.join(RULES)}, or a number in [0, 1)", rule)
    share = exact_rational(rule, "split")
    if not 0 <= share < 1:
        hint = "It is the distribution's share of the budget; the counts need some."
        raise ArgumentError("split", "lie in [0, 1)", rule, hint)
    return Split(whole * share, whole * (1 - share), "explicit")


def _share(epsilon: float, rule: str, records: int, size: int) -> float:
    if rule == "paper":
        return rule_of_thumb(epsilon)
    if epsilon >= max(2.0, math.log(records / size) - 1.2):
        return 0.0
    if rule == "combined":
        return 0.85 * rule_of_thumb(epsilon)
    return min(max(0.9 - 0.03 * size * epsilon, 0.5), 0.8)


def choose_split(tradeoff: Tradeoff | None, epsilon: Epsilon, *, records: int, size: int) -> Split:
    """The split of the method preserve: that of a tradeoff, or "combined" where none was given."""
    if tradeoff is None:
        return split_budget(epsilon, records=records, size=size)
    if isinstance(tradeoff, str):
        return split_at_plain(epsilon, records=records, size=size)
    return split_for_tradeoff(tradeoff, epsilon, records=records, size=size)


def split_at_plain(epsilon: Epsilon, *, records: int, size: int) -> Split:
    """Divide `epsilon` so that counts handed out by rank err about as much as plain noise.

    Drawing at (1 - f) epsilon costs them epsilon coth(epsilon) f of their error, and handing them
    out by rank gains some of it back: least where counts spread widely. On the table of teachers
    in schools it gains 0.02 epsilon^-0.85 for small epsilon, and nothing is left to spend from
    epsilon 2 on. So f = 0.0225 epsilon^-1.85 tanh(epsilon) (1 - (epsilon/2)^1.5), at most 0.12.
    From epsilon 2 on, and with fewer than 5 rows for each possible count, the draws alone tell the
    distribution.

    >>> float(split_at_plain("1/2", records=3136, size=51).epsilon1)
    0.015
    """
    whole = exact_epsilon(epsilon)
    share = Fraction(0)
    if whole < 2 and records >= FEWEST_ROWS * size:
        wanted = 0.0225 * math.pow(float(whole), -1.85) * math.tanh(whole)
        wanted *= 1 - float(whole / 2) ** 1.5
        share = Fraction(round(1000 * min(wanted, LARGEST_PLAIN_SHARE)), 1000)
    return Split(whole * share, whole * (1 - share), PLAIN)


def split_for_tradeoff(tradeoff: Fraction, epsilon: Epsilon, *, records: int, size: int) -> Split:
    """Divide `epsilon` so that the predicted error + tradeoff * predicted distance is least.

    Parameters
    ----------
    tradeoff : how much error of single counts one unit of distribution error is worth
    epsilon : the whole budget
    records, size : the numbers of rows and of possible counts (or cells), public

    >>> split_for_tradeoff(Fraction(1), "1/2", records=3136, size=51).epsilon1
    Fraction(3, 200)
    """
    whole = exact_epsilon(epsilon)

    def predict(share: Fraction) -> float:
        distance = predict_distance(float(whole), float(share), records, size)
        return predict_error(float(whole * (1 - share))) + float(tradeoff) * distance

    share = min(SHARES, key=predict)
    return Split(whole * share, whole * (1 - share), "tradeoff")


def predict_error(epsilon: float) -> float:
    """The mean absolute error of matched counts to be expected from draws at `epsilon`.

    That of plain noise, 2a/(1 - a^2), times 1/(1 + 0.45 epsilon^(-2/3)), the usual gain from
    knowing the distribution: measured on five tables (docs/theory.md), within a factor of two.
    """
    return _plain_error(epsilon) / (1 + 0.45 * math.pow(epsilon, -2 / 3))


def predict_distance(epsilon: float, share: float, records: int, size: int) -> float:
    """The distance of the estimated distribution to be expected, if it gets `share` of epsilon.

    Measured on the same tables. The draws alone have 0.36 (size/records)^(1/4) e^0.95, e being
    the error of plain noise; with a share f for the distribution it is at most
    0.12 sqrt(size/records) epsilon^-0.85 f^(-1/3).
    """
    ratio = size / records
    alone = 0.36 * math.pow(ratio, 0.25) * math.pow(_plain_error(epsilon * (1 - share)), 0.95)
    if not share:
        return alone
    told = 0.12 * math.sqrt(ratio) * math.pow(epsilon, -0.85) * math.pow(share, -1 / 3)
    return min(alone, told)


def _plain_error(epsilon: float) -> float:
    """The mean absolute value of geometric noise, 2a/(1 - a^2) = 1/sinh(epsilon)."""
    return 1 / math.sinh(min(epsilon, 700.0))
