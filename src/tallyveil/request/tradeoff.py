"""How much error of single counts an error of their distribution is worth, as a publisher says it.

The frontier between the two is in docs/theory.md. A tradeoff decides which share of epsilon the
distribution gets and, below 1, how far counts follow the best guess for their row instead of the
rank that keeps the distribution.
"""

from __future__ import annotations

from tallyveil.budget.entries import shown_rational
from tallyveil.request.budget_split import Tradeoff

__all__ = [
    "BEST_USE",
    "LARGEST_TRADEOFF",
    "describe_tradeoff",
    "moves_counts",
    "show_tradeoff",
]

LARGEST_TRADEOFF = 1000
BEST_USE = "best guess for each row; not to be summed, averaged or tabulated"


def moves_counts(tradeoff: Tradeoff | None) -> bool:
    """Whether counts are moved towards the best guess after they were handed out by rank."""
    return isinstance(tradeoff, str) or (tradeoff is not None and tradeoff < 1)


def describe_tradeoff(tradeoff: Tradeoff | None) -> tuple[str, ...]:
    """What was done to counts at a tradeoff below 1, as a step of the page; else nothing."""
    if isinstance(tradeoff, str):
        step = (
            "Where the estimated distribution says that such counts would err more than plain "
            "noise at the same epsilon, counts far from what their row's noisy count says were "
            "moved towards it, the least likely first, until they no longer would."
        )
        return (step,)
    if tradeoff is None or not moves_counts(tradeoff):
        return ()
    share = shown_rational(tradeoff)
    part = f"the central part, of probability {share}," if tradeoff else "the middle"
    step = (
        f"Where such a count lay outside {part} of what the row's noisy count and the estimated "
        "distribution say of it, it was moved to the nearest end. So the table follows the "
        "estimated distribution in part only, and single counts err less."
    )
    return (step,)


def show_tradeoff(tradeoff: Tradeoff) -> str:
    """A tradeoff as a page shows it."""
    if isinstance(tradeoff, str):
        return "the largest at which single counts err no more than plain noise"
    return shown_rational(tradeoff)
