"""Croft et al. (2020), section 4.3.4: releasing over a wider range (Figures 6 and 7)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from reproduction.croft.expected_loss import (
    AFTER,
    AFTER_SQUARED,
    BUILDERS,
    EPSILONS,
    FACE,
    MEASURES,
    NOISE,
    ONE,
    SLACK,
    SQUARED,
    TWO,
    measure_losses,
    plot_losses,
    tabulate_losses,
)
from reproduction.experiment import (
    Context,
    Experiment,
    Result,
    check_claim,
    check_number,
)
from tallyveil.figures import panels
from tallyveil.query import Query

__all__ = ["EXPERIMENTS"]


def _plot_extended(
    context: Context, make: Callable[[float], Query], printed: float | None, reason: str = ""
) -> Result:
    """Figures 6 and 7: releasing over 300 % of the valid range."""
    epsilons = (0.1, 0.2, 0.5, 1.0) if context.quick else EPSILONS[1:]
    kept = {k: BUILDERS[k] for k in (ONE, TWO, *NOISE)}
    inside, outside = make(1), make(3)
    found = measure_losses(context, epsilons, lambda e: (inside, e), kept)
    wide = measure_losses(context, epsilons, lambda e: (outside, e), kept)
    found |= {(e, f"{name} (ext)"): value for (e, name), value in wide.items()}
    small = epsilons[0]

    def compare(name: str, measure: int) -> list[float]:
        """The wide range's error over the valid range's, at every epsilon."""
        return [found[e, f"{name} (ext)"][measure] / found[e, name][measure] for e in epsilons]

    apart = [
        max(abs(x - 1) for name in (ONE, TWO) for x in compare(name, k))
        for k in range(len(MEASURES))
    ]
    findings = [
        check_claim(
            f"face value: noise mechanisms worse with the wide range at high privacy ({small})",
            ", ".join(
                f"{name} {compare(name, FACE)[0]:.2f} times ({compare(name, SQUARED)[0]:.2f} "
                "squared)"
                for name in NOISE
            ),
            min(compare(name, k)[0] for name in NOISE for k in (FACE, SQUARED)) > 1,
        ),
        check_claim(
            "post-processed: wide range on a par or marginally better (noise mechanisms)",
            f"{min(min(compare(name, AFTER)) for name in NOISE):.3f} to "
            f"{max(max(compare(name, AFTER)) for name in NOISE):.3f} times",
            max(x for k in (AFTER, AFTER_SQUARED) for name in NOISE for x in compare(name, k))
            <= 1 + SLACK,
        ),
        check_number(
            "variants 1 and 2: no difference at face value; largest, relative",
            0.0,
            max(apart[FACE], apart[SQUARED]),
            1e-5,
        ),
        check_number(
            "variants 1 and 2: no difference post-processed; largest, relative",
            0.0,
            max(apart[AFTER], apart[AFTER_SQUARED]),
            1e-5,
            reason,
        ),
    ]
    if printed is not None:
        findings.append(
            check_number(
                "independent solver, epsilon = 0.2: variant 1 (ext)",
                printed,
                found[0.2, f"{ONE} (ext)"][0],
                1e-5,
            )
        )
    parts = plot_losses(found, "epsilon", "x")
    return Result(
        {"data": tabulate_losses(found, "epsilon")},
        partial(panels, parts, columns=2),
        tuple(findings),
    )


def figure_6(context: Context) -> Result:
    """Mean of 10 records over the valid and three times the valid range."""
    return _plot_extended(context, lambda extend: Query.mean(10, 0, 4, extend=extend), None)


def figure_7(context: Context) -> Result:
    """Maximum of 0..9 over the valid and three times the valid range."""
    return _plot_extended(
        context,
        lambda extend: Query.maximum(0, 9, extend=extend),
        2.450166002687522,
        "The programs' optima are not unique: optima of the same expected error differ a little "
        "after post-processing.",
    )


EXPERIMENTS = (
    Experiment("croft", "Figure 6", "Extended range, mean", "4.3.4", figure_6),
    Experiment("croft", "Figure 7", "Extended range, maximum", "4.3.4", figure_7),
)
