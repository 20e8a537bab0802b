"""What the named mechanisms of Cormode et al. (2018) cost, in closed form.

The cost is the rescaled zero-one loss L0 of the paper's equation 1: (n+1)/n times the chance of a
wrong answer under a uniform prior; guessing costs 1. The paper has no closed form for WM.
"""

from __future__ import annotations

from typing import Literal

from tallyveil.errors import ArgumentError

__all__ = ["compute_gm_cost", "compute_wm_cost"]


def compute_gm_cost(alpha: float) -> float:
    """Compute the cost of the geometric mechanism GM: 2a/(1+a), the least of any mechanism.

    Parameters
    ----------
    alpha : float
        a = e^-epsilon, strictly between 0 and 1.

    Returns
    -------
    float
        The rescaled zero-one loss, whatever the largest count.

    References
    ----------
    Cormode, Kulkarni and Srivastava (2018), section 6.1.

    Examples
    --------
    >>> compute_gm_cost(0.5) == 2 / 3
    True
    """
    if not 0 < alpha < 1:
        raise ArgumentError("alpha", "lie strictly between 0 and 1", alpha)
    return 2 * alpha / (1 + alpha)


def compute_wm_cost(n: int, alpha: float, reading: Literal["weak", "monotone"] = "weak") -> float:
    """Compute the cost of WM in either of its two readings, without solving a program.

    Weak honesty alone costs what GM does from n = 2a/(1-a) on. Below, every inner answer is
    released with probability 1/(n+1) when it is true, and the two ends with c when they are:

        (n + 1 - (n-1)/(n+1) - 2c) / n,  c = (1 - s/(n+1)) / (a^j + a^(n-j)),
        j = floor(n/2), s = sum of a^|i-j| over 1 <= i <= n-1.

    Column monotonicity (or column honesty, with or without weak honesty and row properties)
    costs what GM does for a <= 1/2, what weak honesty does for n <= 2, and otherwise
    2a/(1+a) + (2a-1)(1-a) / (n a (1+a)) up to a = 2/3. For larger a no closed form is known: `wm`
    solves the program. These formulas were found from the programs and agree with them to 1e-7
    for n = 1 to 25 at 20 values of a; they are not proved.

    Parameters
    ----------
    n : int
        The largest count, at least 1.
    alpha : float
        a = e^-epsilon, strictly between 0 and 1; at most 2/3 for the reading ``"monotone"``
        unless n is 1 or 2.
    reading : {"weak", "monotone"}
        As for `wm`.

    Returns
    -------
    float
        The rescaled zero-one loss.

    References
    ----------
    Cormode, Kulkarni and Srivastava (2018), Figures 6, 8 and 9 (errata, Cormode 14).

    Examples
    --------
    >>> round(compute_wm_cost(8, 10 / 11), 9), round(compute_wm_cost(5, 2 / 3, "monotone"), 9)
    (0.966238889, 0.82)
    """
    gm = compute_gm_cost(alpha)
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise ArgumentError("n", "be a whole number of at least 1", n)
    if reading not in ("weak", "monotone"):
        raise ArgumentError("reading", "be 'weak' or 'monotone'", reading)
    if n == 1 or alpha <= 0.5:
        return gm
    if reading == "weak" or n == 2:
        return gm if n * (1 - alpha) >= 2 * alpha else _compute_below_threshold(n, alpha)
    if alpha > 2 / 3:
        hint = "No closed form is known there. Use tallyveil.papers.wm."
        raise ArgumentError("alpha", "be at most 2/3 for reading='monotone'", alpha, hint)
    return gm + (2 * alpha - 1) * (1 - alpha) / (n * alpha * (1 + alpha))


def _compute_below_threshold(n: int, alpha: float) -> float:
    middle = n // 2
    inside = sum(alpha ** abs(i - middle) for i in range(1, n))
    ends = (1 - inside / (n + 1)) / (alpha**middle + alpha ** (n - middle))
    return (n + 1 - (n - 1) / (n + 1) - 2 * ends) / n
