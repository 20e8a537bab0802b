"""How the pipeline of Kohli and Laskowski (2026) divides its budget."""

from __future__ import annotations

from tallyveil.errors import ArgumentError
from tallyveil.exact import Epsilon
from tallyveil.request import budget_split
from tallyveil.request.budget_split import Split

__all__ = ["split_budget"]


def split_budget(epsilon: Epsilon, split: Epsilon = "paper") -> Split:
    """Divide `epsilon` between the distribution (epsilon1) and the counts (epsilon2).

    Parameters
    ----------
    epsilon : number or str
        The whole privacy loss.
    split : "paper", number or str
        The distribution's share. ``"paper"`` is the rule of thumb
        0.106 + 0.533 exp(-2.87 epsilon), rounded to six decimals; or a number above 0 and
        below 1.

    Returns
    -------
    Split
        Two exact rationals, `epsilon1` and `epsilon2`, that add up to `epsilon`.

    References
    ----------
    Kohli and Laskowski (2026), section 6 and appendix F.

    Examples
    --------
    >>> parts = split_budget(1, "1/4")
    >>> parts.epsilon1, parts.epsilon2
    (Fraction(1, 4), Fraction(3, 4))
    """
    if isinstance(split, str) and split != "paper" and not any(map(str.isdigit, split)):
        raise ArgumentError("split", "be 'paper' or a number above 0 and below 1", split)
    # neither rule looks at the size of the table, which the product's own rules do
    parts = budget_split.split_budget(epsilon, split, records=1, size=1)
    if parts.epsilon1 == 0:
        hint = "The pipeline draws counts from the private distribution."
        raise ArgumentError("split", "be greater than 0", split, hint)
    return parts
