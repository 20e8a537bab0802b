"""Design the best mechanism for a query, with a proof of how close to best it is."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from tallyveil._version import __version__
from tallyveil.errors import TallyveilError
from tallyveil.exact import Epsilon
from tallyveil.loss import Loss
from tallyveil.mechanism import Mechanism
from tallyveil.optimize.bound import measure_gap
from tallyveil.optimize.closed_forms import find_closed_form
from tallyveil.optimize.problem import ROUNDED_GAP, DesignOptions, Problem, pose
from tallyveil.optimize.search import Attempt, SearchResult, solve_problem
from tallyveil.optimize.solver import Progress, watch_solver
from tallyveil.prior import Prior
from tallyveil.query import Query


@dataclass(frozen=True, repr=False)
class Design:
    """A mechanism, and how close to the best possible it is proved to be.

    Attributes
    ----------
    mechanism : Mechanism
        The designed mechanism: private, with the requested properties.
    objective : float
        Prior mean, or worst case, of the loss of `mechanism`.
    lower_bound : float
        No mechanism that meets the demands has a lower objective. Proved from dual values, or by
        the theorem of a closed form, with outward rounding, without trust in the solver.
    gap : float
        The distance between objective and lower bound, divided by the objective, at every
        scale: losses in other units do not change it. An objective below the bound belongs to a
        mechanism that misses a demand within its tolerance; the gap says how much that matters.
    method : str
        "lp", "constant" (an answer that does not look at the truth), or the closed form.
    reason : str
        Why that method, in a sentence.
    seconds : float
        Time taken; 0 when read from the cache.
    solver : str
        Name and version of the solver, "none" where none was used.
    attempts : tuple of Attempt
        The linear programs that were tried, in order, with window, margin, scaling, gap,
        seconds and outcome; empty for closed forms.

    Examples
    --------
    >>> d = design(Query.count(5), 1.0, properties="fair")
    >>> d
    Design(Query.count(upper=5), objective=..., gap=..., method='lp')
    >>> [attempt.outcome for attempt in d.attempts]
    ['meets the demands, and the gap is sufficient']
    """

    mechanism: Mechanism
    objective: float
    lower_bound: float
    gap: float
    method: str
    reason: str
    seconds: float
    solver: str
    attempts: tuple[Attempt, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON-ready data; `from_dict` reads it back."""
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        attempts = [asdict(attempt) for attempt in self.attempts]
        return {**fields, "mechanism": self.mechanism.to_dict(), "attempts": attempts}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Design:
        """Return the design that `to_dict` described."""
        mechanism = Mechanism.from_dict(data["mechanism"])
        attempts = tuple(Attempt(**attempt) for attempt in data.get("attempts", ()))
        return cls(**{**data, "mechanism": mechanism, "attempts": attempts})

    def __repr__(self) -> str:
        return (
            f"Design({self.mechanism.query!r}, objective={self.objective:.6g}, "
            f"gap={self.gap:.1g}, method={self.method!r})"
        )

    def _repr_html_(self) -> str:
        """Return the mechanism as a heatmap, with its objective and proof, for notebooks."""
        from tallyveil.notebook import show_table

        facts = [
            ("objective", f"{self.objective:.9g}"),
            ("proved lower bound", f"{self.lower_bound:.9g}"),
            ("relative gap", f"{self.gap:.1e}"),
            ("method", self.method),
            ("solver", self.solver),
        ]
        return self.mechanism._repr_html_() + show_table(("design", ""), facts)

    def __str__(self) -> str:
        return (
            f"{self.mechanism!r}: objective {self.objective:.9g}, "
            f"proved within {self.gap:.1e} of the best, by {self.method}"
        )


def design(
    query: Query,
    epsilon: Epsilon,
    loss: Loss = "absolute",
    *,
    prior: Prior = None,
    worst_case: bool = False,
    side_information: Iterable[float] | None = None,
    properties: Iterable[str] | str | None = (),
    delta: Epsilon = 0,
    fixed_point: ArrayLike | None = None,
    target: ArrayLike | None = None,
    method: Literal["auto", "lp"] = "auto",
    zero_outputs: bool | float = True,
    cache: str | Path | None = None,
    progress: Progress = None,
) -> Design:
    """Find the mechanism of least loss among all that are private and have the given properties.

    Minimises over stochastic matrices M[true, released]::

        sum_i prior_i sum_j loss(i, j) M[i, j]        or, with worst_case, the largest
                                                      sum_j loss(i, j) M[i, j] over possible i
        subject to  M[i, j] <= e^epsilon M[k, j]      for neighbours i, k
                    the rows of every property        (`tallyveil.properties`)

    Closed forms cost O(n m). Programs on a path took time like n^1.1 to n^1.7 up to n = 321 for
    fixed epsilon (about 3.5/epsilon entries on either side of the truth are free), on complete
    graphs like n^1.1 to n^2.5, on bands like n^3.4 to n^5.3. Ctrl-C stops a solve between
    iterations.

    Parameters
    ----------
    query : Query
        Any inputs, outputs and neighbours.
    epsilon : int, float, str or Fraction
        The privacy loss, greater than 0 and exact (0.1 means 1/10).
    loss : str, tuple, callable or array of float, shape (n, m)
        A name, ("beyond", d), ("power", p), a function of (true, released), or a table.
    prior : None, tuple or array of float, shape (n,)
        Distribution of the true answers; None is uniform, or `fixed_point` where one is given.
    worst_case : bool
        Whether to minimise the largest expected loss instead of the mean.
    side_information : iterable of float, or None
        The true answers that are possible; a prior is conditioned on them.
    properties : iterable of str, str or None
        Any of the names in `tallyveil.properties`.
    delta : int, float, str or Fraction
        For (epsilon, delta)-privacy: sum_j max(0, M[i,j] - e^epsilon M[k,j]) <= delta.
    fixed_point : array of float, shape (n,), or None
        A distribution z of the answers that must come out as it goes in, z M = z.
    target : array of float, shape (m,), or None
        A distribution of the outputs that must come out when the prior goes in.
    method : {"auto", "lp"}
        "auto" takes a closed form where a theorem covers the case; "lp" solves the program.
    zero_outputs : bool or float
        Whether outputs may have probability zero. False demands 1/(1000 m) for the truth
        nearest to each of the m outputs; a number demands that much.
    cache : str, Path or None
        A folder where results are stored and looked up by the hash of the problem.
    progress : bool, callable or None
        See `tallyveil.optimize.solver`.

    Returns
    -------
    Design
        The mechanism is private up to the rounding of doubles (certify it to prove it in
        integers), and has the properties to 1e-9 and the output distributions to 1e-8 absolute.
        The lower bound is a true one.

    Raises
    ------
    InfeasibleError
        If there is no such mechanism; names an irreducible set of demands.

    References
    ----------
    Cormode, Kulkarni and Srivastava (2018), BASICDP (4)-(7) and section 4; Croft, Sack and Shi
    (2020), Variants 1 and 2; Gupte and Sundararajan (2010), section 2.5.

    Examples
    --------
    >>> d = design(Query.count(5), epsilon=0.5, properties=["fair", "column_monotone"])
    >>> round(d.objective, 6), d.gap < 1e-6, d.mechanism.has("fair")
    (1.138103, True, True)
    """
    options = DesignOptions(
        loss=loss,
        prior=prior,
        worst_case=worst_case,
        side_information=side_information,
        properties=properties,
        delta=delta,
        fixed_point=fixed_point,
        target=target,
        method=method,
        zero_outputs=zero_outputs,
        cache=cache,
        progress=progress,
    )
    return design_with(query, epsilon, options)


def design_with(query: Query, epsilon: Epsilon, options: DesignOptions) -> Design:
    """Find the mechanism that `design` would find for the same options."""
    problem = pose(query, epsilon, options)
    file = None
    if options.cache is not None:
        name = f"design-{problem.digest()[:40]}-{options.method}-{__version__}.json"
        file = Path(options.cache) / name
        if (cached := _read_cached(file)) is not None:
            return cached
    start = time.perf_counter()
    # the power of two, an exact factor, that brings the largest loss between 1/2 and 1
    exponent = int(np.frexp(np.abs(problem.loss_table).max())[1])
    unit = problem.rescale(-exponent)
    closed = find_closed_form(unit) if options.method == "auto" else None
    if closed is None:
        result = _find_by_search(unit, options)
    else:
        objective, why = unit.objective(closed.mechanism.matrix), (closed.method, closed.reason)
        result = _make_design(closed.mechanism, objective, closed.bound, *why, solver="none")
    finished = replace(
        result,
        objective=math.ldexp(result.objective, exponent),
        lower_bound=math.ldexp(result.lower_bound, exponent),
        seconds=time.perf_counter() - start,
    )
    if file is not None:
        _write_cached(file, finished)
    return finished


def _make_design(
    mechanism: Mechanism, objective: float, bound: float, method: str, reason: str, **search: Any
) -> Design:
    """Build a design whose bound is not above an objective that rounding put a little below it."""
    if measure_gap(objective, bound) <= ROUNDED_GAP:
        bound = min(bound, objective)
    gap = measure_gap(objective, bound)
    return Design(mechanism, objective, bound, gap, method, reason, seconds=0.0, **search)


def _find_by_search(problem: Problem, options: DesignOptions) -> Design:
    """Return the design by linear programs."""
    with watch_solver(options.progress, f"Designing for {problem.query!r}") as watch:
        result = solve_problem(problem, watch)
    name = _name_mechanism(problem)
    mechanism = Mechanism(
        result.matrix, problem.query, problem.epsilon, delta=problem.delta, name=name
    )
    search = {"solver": result.solver, "attempts": result.attempts}
    reason = _explain(result, options)
    return _make_design(mechanism, result.objective, result.bound, result.method, reason, **search)


def _explain(result: SearchResult, options: DesignOptions) -> str:
    """Explain in a sentence why the search returned this result."""
    why = "No closed form is proved for this case" if options.method == "auto" else "Asked for"
    if result.method == "constant":
        return f"{why}: a linear program, but no better than the best constant answer."
    if result.method != "lp":
        name = result.method.replace("_", " ")
        return f"{why}: a linear program, but no better than the closed form {name}."
    size = "the whole program" if result.window is None else f"tails from distance {result.window}"
    return f"{why}: a linear program, {size}, {result.iterations} iterations."


def _name_mechanism(problem: Problem) -> str:
    """Name a mechanism after its loss and properties."""
    kind = "worst-case " if problem.worst_case else ""
    listed = ", ".join(name.replace("_", " ") for name in problem.properties)
    return f"optimal for {kind}{problem.loss_name} loss" + (f" ({listed})" if listed else "")


def _read_cached(file: Path) -> Design | None:
    """Read a stored result; a file that cannot be read counts as absent."""
    try:
        stored = Design.from_dict(json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, TallyveilError):
        return None
    return replace(stored, seconds=0.0)


def _write_cached(file: Path, result: Design) -> None:
    """Write a result under a temporary name first, so that no reader sees half a file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_suffix(f".{os.getpid()}.part")
    partial.write_text(json.dumps(result.to_dict()), encoding="utf-8")
    partial.replace(file)
