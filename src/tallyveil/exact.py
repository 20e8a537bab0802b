"""Exact rationals for privacy parameters, and proved bounds of e^epsilon.

A float means the decimal it prints as: 0.1 is 1/10, not the binary fraction just above it.
Certificates and ledgers work with that rational, so ten debits of 0.1 fill a budget of 1.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import Any, TypeAlias

from tallyveil.errors import ArgumentError

Epsilon: TypeAlias = int | float | str | Decimal | Fraction

SMALLEST_EPSILON = Fraction(1, 10**12)
LARGEST_EPSILON = Fraction(700)
"""e^epsilon must be a finite double."""

MOST_DIGITS = 5000
"""Decimals with more digits before or after the point than this are refused."""


def is_whole(value: object) -> bool:
    """Return True for whole numbers of every type but True and False."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def require_positive(value: Any, argument: str) -> int:
    """Return a whole number of at least 1."""
    if not is_whole(value) or value < 1:
        raise ArgumentError(argument, "be a whole number of at least 1", value)
    return int(value)


def exact_rational(value: Epsilon, argument: str = "value") -> Fraction:
    """Return `value` as a rational number; a float means the decimal it prints as.

    >>> exact_rational(0.1), exact_rational("1/3"), exact_rational("1e-3")
    (Fraction(1, 10), Fraction(1, 3), Fraction(1, 1000))
    """
    if isinstance(value, bool) or value is None:
        rule = "be a number, a Fraction, a Decimal or a string"
        raise ArgumentError(argument, rule, got=repr(value))
    if isinstance(value, (Integral, Rational)):
        return Fraction(int(value)) if isinstance(value, Integral) else Fraction(value)
    text = str(value).strip() if isinstance(value, (str, Decimal, Real)) else ""
    numerator, slash, denominator = text.partition("/")
    try:
        return _read_decimal(numerator) / (_read_decimal(denominator) if slash else 1)
    except (ArithmeticError, ValueError):
        hint = 'Give a number, a Fraction, or a string such as "1/2" or "0.1".'
        raise ArgumentError(argument, "be a finite number", value, hint) from None


def _read_decimal(text: str) -> Fraction:
    """Read an exact number; an arithmetic or value error unless finite and short enough."""
    number = Decimal(text)
    if max(abs(number.adjusted()), len(number.as_tuple().digits)) > MOST_DIGITS:
        raise OverflowError
    return Fraction(number)


def exact_epsilon(value: Epsilon, argument: str = "epsilon") -> Fraction:
    """Return a privacy loss as an exact rational between 1e-12 and 700.

    >>> exact_epsilon("0.1")
    Fraction(1, 10)
    """
    exact = exact_rational(value, argument)
    if exact <= 0:
        hint = "Smaller is more private; 1.0 is a usual start."
        raise ArgumentError(argument, "be greater than 0", value, hint)
    if not SMALLEST_EPSILON <= exact <= LARGEST_EPSILON:
        raise ArgumentError(argument, "lie between 1e-12 and 700", value)
    return exact


def exact_delta(value: Epsilon, argument: str = "delta") -> Fraction:
    """Return the delta of (epsilon, delta)-privacy as an exact rational in [0, 1).

    >>> exact_delta(1e-6)
    Fraction(1, 1000000)
    """
    exact = exact_rational(value, argument)
    if not 0 <= exact < 1:
        raise ArgumentError(argument, "lie in [0, 1)", value)
    if exact and float(exact) == 0.0:
        raise ArgumentError(argument, "be 0 or at least 1e-300", value)
    return exact


def exact_ratio(value: Epsilon, argument: str = "ratio") -> Fraction:
    """Return exp(-epsilon), the papers' alpha, as a fraction strictly between 0 and 1.

    >>> exact_ratio("1/4")
    Fraction(1, 4)
    """
    ratio = exact_rational(value, argument)
    if not 0 < ratio < 1:
        raise ArgumentError(argument, "lie strictly between 0 and 1", value)
    return ratio


def exp_lower(epsilon: Fraction, bits: int = 128) -> Fraction:
    """Return a rational not above e^epsilon; the relative gap is below 2^-100 at 128 bits.

    The Taylor sum in units of 2^-bits, for epsilon > 0, every term rounded down and the rest left
    out, so every step can only lower the result.

    >>> lower = exp_lower(Fraction(1))
    >>> 0 < Fraction("2.71828182845904523536028747135267") - lower < Fraction(1, 10**30)
    True
    """
    term = total = 1 << bits
    order = 0
    while term:
        order += 1
        term = term * epsilon.numerator // (epsilon.denominator * order)
        total += term
    return Fraction(total, 1 << bits)


def exp_upper(epsilon: Fraction, bits: int = 128) -> Fraction:
    """Return a rational not below e^epsilon; the relative gap is below 2^-100 at 128 bits.

    The Taylor sum with every term rounded up. It stops after a term with order at least
    2 epsilon; from there each true term is at most half the one before, so all the rest together
    are at most the last term, which is added once more.
    """
    term = total = 1 << bits
    order = 0
    while term > 1 or order < 2 * epsilon:
        order += 1
        term = -(-term * epsilon.numerator // (epsilon.denominator * order))
        total += term
    return Fraction(total + term, 1 << bits)
