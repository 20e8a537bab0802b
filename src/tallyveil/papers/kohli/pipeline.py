"""The two-stage pipeline on a column of counts (paper 002, Figure 2; design of our own).

Three steps that cannot be mixed up: `draw_privately` sees the table and returns private draws;
`publish` sees the draws and returns the release; the receipt says what each cost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from tallyveil.arrays import Floats, Integers
from tallyveil.certified.certify import certify
from tallyveil.certified.transport import implicit_transport
from tallyveil.errors import ArgumentError
from tallyveil.exact import Epsilon
from tallyveil.mechanism import Mechanism
from tallyveil.papers.kohli.greedy import greedy_fixed_point
from tallyveil.papers.kohli.histogram import Above, checked_counts
from tallyveil.papers.kohli.postprocess import POSTPROCESSING
from tallyveil.papers.kohli.privatizers import (
    PRIVATIZERS,
    PrivateHistogram,
    noise_certificate,
    privatize_distribution,
)
from tallyveil.papers.kohli.unfixed import unfixed_optimum
from tallyveil.publish.budget_split import Split, split_budget
from tallyveil.publish.estimate import PrivateDraws
from tallyveil.publish.methods import draw_privately, match_counts
from tallyveil.sampling.entropy import Entropy

__all__ = ["CONSTRUCTORS", "Pipeline", "privatize_counts"]

Constructor: TypeAlias = str | Callable[[Floats, Fraction], Mechanism]

CONSTRUCTORS = ("transport", "max", "min", "sandwich", "unfixed")
"""Fixed-point (and one unfixed) mechanisms for drawing rows independently, by name."""

NOT_PRIVATE = "NOT PRIVATE: drawn with a seeded test source"
UNIT = "one person: the count of one row changes by one"


@dataclass(frozen=True, eq=False)
class Pipeline:
    """A privatized column of counts.

    Attributes
    ----------
    counts : the released counts, shape (N,), integers in 0..upper, rows in their old order
    distribution : the share of released rows with each count, shape (upper + 1,)
    target : the private law the counts were drawn to follow; the same as `distribution` when
        ranks were matched
    receipt : what was done and what it cost, JSON-ready; holds no confidential number
    """

    counts: Integers
    distribution: Floats
    target: Floats
    receipt: dict[str, Any]


def privatize_counts(
    counts: ArrayLike,
    upper: int,
    epsilon: Epsilon,
    *,
    split: str | Epsilon | None = None,
    match: bool = True,
    above: Above = "refuse",
    privatizer: str = "cumulative",
    postprocess: str = "isotonic",
    constructor: Constructor = "transport",
    delta: Epsilon = 0,
    entropy: Entropy | None = None,
) -> Pipeline:
    """Release a column of counts and its distribution for `epsilon` in all.

    By default every row gets one clamped geometric draw (epsilon2), the cumulative histogram
    gets geometric noise (epsilon1), both together estimate the histogram, and counts with
    exactly that histogram are handed out in the order of the draws. With ``match=False`` it is
    the paper's pipeline: a private law, a mechanism that keeps it, an independent draw per row.

    Parameters
    ----------
    counts : whole numbers, shape (N,); N becomes public
    upper : the public largest count. `tv.private_upper` finds one for a budget of its own
    epsilon : the whole privacy loss. One person changes one row's count by one
    split : see `split_budget`; ``"combined"`` if not given, ``"paper"`` with match=False
    match : combine both releases and match ranks, or draw every row independently
    above : ``"refuse"`` counts above upper, or ``"top_code"`` them
    privatizer, postprocess, delta : stage one with match=False; see `privatize_distribution`
    constructor : stage two with match=False: ``"transport"``, algorithm 1 by its selector
        ``"max"``, ``"min"``, ``"sandwich"``, ``"unfixed"``, or a function of (law, epsilon)
    entropy : a source from `tallyveil.sampling.entropy`; the operating system's if not given

    Guarantees: exactly (epsilon1 + epsilon2)-private for ideal random words, epsilon1 +
    epsilon2 = epsilon as rationals. Costs O(N log N) and, for the estimate, O(n^3) up to
    n = 1,500 counts and O(n) beyond.

    >>> from tallyveil.sampling.entropy import SeededNotPrivate
    >>> done = privatize_counts([0, 1, 1, 5], upper=5, epsilon=50, entropy=SeededNotPrivate(1))
    >>> done.counts.tolist(), done.receipt["epsilon2"]
    ([0, 1, 1, 5], '50')
    """
    table = checked_counts(counts, upper, above)
    source = Entropy.fresh(entropy)
    rule = split if split is not None else ("combined" if match else "paper")
    budget = split_budget(epsilon, rule, records=len(table), size=int(upper) + 1)
    if match:
        if privatizer != "cumulative":
            raise ArgumentError("privatizer", "be 'cumulative' when ranks are matched", privatizer)
        draws = draw_privately(table, upper, budget, source)
        done = _matched(draws, source)
    else:
        _check_independent(budget, privatizer, postprocess, constructor)
        stage = privatize_distribution(
            table, upper, budget.epsilon1, privatizer, delta=delta, entropy=source
        )
        done = _independently(
            table, stage, constructor, budget.epsilon2, postprocess=postprocess, entropy=source
        )
    return _with_receipt(done, budget, source, upper=int(upper), above=above)


def _check_independent(
    budget: Split, privatizer: str, postprocess: str, constructor: Constructor
) -> None:
    """Refuse what cannot work before anything is drawn."""
    if budget.epsilon1 == 0:
        hint = "Match ranks, or give the distribution a share of the budget."
        raise ArgumentError("split", "be above 0 when rows are drawn independently", 0, hint)
    known: dict[str, tuple[object, tuple[str, ...]]] = {
        "privatizer": (privatizer, tuple(PRIVATIZERS)),
        "postprocess": (postprocess, tuple(POSTPROCESSING)),
        "constructor": (constructor, CONSTRUCTORS),
    }
    for argument, (value, names) in known.items():
        if value not in names and not (argument == "constructor" and callable(value)):
            raise ArgumentError(argument, f"be one of {', '.join(names)}", value)


def _matched(draws: PrivateDraws, entropy: Entropy) -> Pipeline:
    """Estimate, round, match: post-processing of `draws`, without access to the table."""
    released, histogram = match_counts(draws, entropy)
    share = histogram / draws.records
    stages = [_noise_stage("distribution", "cumulative", draws.epsilon1)] if draws.epsilon1 else []
    stages.append(_noise_stage("counts", "geometric", draws.epsilon2))
    steps = [
        "estimate the histogram from both releases" if draws.epsilon1
        else "estimate the histogram from the draws (200 steps of expectation maximisation)",
        "round its cumulative sums to whole rows",
        "sort rows by their draws, ties at random, and hand out the counts of the histogram",
    ]  # fmt: skip
    receipt = {"delta": "0", "match": True, "stages": stages, "postprocessing": steps}
    return Pipeline(released, share, share, receipt)


def _noise_stage(name: str, mechanism: str, epsilon: Fraction) -> dict[str, str]:
    return {
        "name": name,
        "mechanism": mechanism,
        "epsilon": str(epsilon),
        "delta": "0",
        "certificate": noise_certificate(epsilon),
    }


def _independently(
    table: Integers,
    stage: PrivateHistogram,
    constructor: Constructor,
    epsilon2: Fraction,
    *,
    postprocess: str,
    entropy: Entropy,
) -> Pipeline:
    """Steps 3 and 4 of Figure 2: build a mechanism from the private law, draw every row."""
    law = stage.law(postprocess)
    name = constructor if isinstance(constructor, str) else "custom"
    certified: Any
    if constructor == "transport":
        implicit = implicit_transport(len(law) - 1, epsilon2, law)
        certified, released = implicit.certified, implicit.release(table, entropy)
    else:
        certified = certify(_constructed(constructor, law, epsilon2), target=law, prior=law)
        released = certified.release(table, entropy)
    if certified.exact_epsilon != epsilon2 or certified.exact_delta != 0:
        rule = f"build a mechanism with epsilon {epsilon2} and delta 0, as the budget says"
        raise ArgumentError("constructor", rule, f"epsilon {certified.exact_epsilon}")
    share = np.bincount(released, minlength=len(law)) / len(released)
    first = {
        "name": "distribution",
        "mechanism": stage.method,
        "epsilon": str(stage.epsilon),
        "delta": str(stage.delta),
        "certificate": stage.certificate,
    }
    second = {
        "name": "counts",
        "mechanism": name,
        "epsilon": str(epsilon2),
        "delta": "0",
        "certificate": certified.certificate["digest"],
    }
    steps = [f"turn the noisy histogram into a law: {postprocess}"]
    receipt = {
        "delta": str(stage.delta),
        "match": False,
        "stages": [first, second],
        "postprocessing": steps,
    }
    return Pipeline(np.asarray(released, dtype=np.int64), share, law, receipt)


def _constructed(constructor: Constructor, law: Floats, epsilon: Fraction) -> Mechanism:
    if callable(constructor):
        return constructor(law, epsilon)
    if constructor == "unfixed":
        return unfixed_optimum(law, epsilon)
    return greedy_fixed_point(law, epsilon, constructor)


def _with_receipt(
    done: Pipeline, budget: Split, entropy: Entropy, *, upper: int, above: Above
) -> Pipeline:
    receipt: dict[str, Any] = {
        "private": bool(entropy.private),
        "epsilon": str(budget.epsilon),
        "epsilon1": str(budget.epsilon1),
        "epsilon2": str(budget.epsilon2),
        "split": budget.rule,
        "unit": UNIT,
        "records": len(done.counts),
        "upper": upper,
        "above": above,
        **done.receipt,
        "entropy": "AES-256-CTR, keyed by the operating system" if entropy.private else NOT_PRIVATE,
    }
    if not entropy.private:
        receipt["mark"] = NOT_PRIVATE
    return replace(done, receipt=receipt)
