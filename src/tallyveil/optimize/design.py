"""The best mechanism for a query, loss, prior and set of properties, with its proof."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from numpy.typing import ArrayLike

from tallyveil._version import __version__
from tallyveil.errors import ArgumentError, TallyveilError
from tallyveil.exact import Epsilon
from tallyveil.loss import Loss
from tallyveil.mechanism import Mechanism
from tallyveil.optimize.engine import relative_gap, solve_problem
from tallyveil.optimize.problem import Problem, pose
from tallyveil.optimize.progress import Progress, watching
from tallyveil.optimize.shortcut import shortcut
from tallyveil.prior import Prior
from tallyveil.query import Query

__all__ = ["Design", "design"]


@dataclass(frozen=True)
class Design:
    """A mechanism, and how close to the best possible it is proved to be.

    Attributes
    ----------
    mechanism : what was designed, private and with the properties asked for
    objective : prior mean, or worst case, of the loss of `mechanism`
    lower_bound : no mechanism that meets the demands has a lower objective. Proved from dual
        values with outward rounding, whatever the solver claimed.
    gap : (objective - lower_bound) / objective
    method : "lp", or the closed form: "geometric", "geometric+remap", "fair", "transport"
    reason : why that method, in a sentence
    seconds : time taken, 0 when read from the cache
    solver : name and version of the solver, "none" for closed forms
    """

    mechanism: Mechanism
    objective: float
    lower_bound: float
    gap: float
    method: str
    reason: str
    seconds: float
    solver: str

    def to_dict(self) -> dict[str, Any]:
        """Everything, JSON-ready."""
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {**fields, "mechanism": self.mechanism.to_dict()}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Design:
        """The design that `to_dict` described."""
        return cls(**{**data, "mechanism": Mechanism.from_dict(data["mechanism"])})

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
    properties: Iterable[str] | str = (),
    delta: Epsilon = 0,
    fixed_point: ArrayLike | None = None,
    target: ArrayLike | None = None,
    method: Literal["auto", "lp"] = "auto",
    zero_outputs: bool | float = True,
    cache: str | Path | None = None,
    progress: Progress = None,
) -> Design:
    """The mechanism of least loss among all that are private and have the given properties.

    Minimises over stochastic matrices M[true, released]::

        sum_i prior_i sum_j loss(i, j) M[i, j]        or, with worst_case, the largest
                                                      sum_j loss(i, j) M[i, j] over possible i
        subject to  M[i, j] <= e^epsilon M[k, j]      for neighbours i, k
                    the rows of every property        (`tallyveil.properties`)

    (000, BASICDP (4)-(7) and section 4; 001, Variants 1 and 2; 003, section 2.5.)

    Parameters
    ----------
    query : what is asked; any inputs, outputs and neighbours
    epsilon : the privacy loss, exact (0.1 means 1/10)
    loss : a name, ("beyond", d), ("power", p), a function of (true, released), or a table
    prior : law on the true answers; None is uniform, or `fixed_point` where one is given
    worst_case : minimise the largest expected loss instead of the mean
    side_information : the true answers that are possible; a prior is conditioned on them
    properties : any of the names in `tallyveil.properties`
    delta : for (epsilon, delta)-privacy: sum_j max(0, M[i,j] - e^epsilon M[k,j]) <= delta
    fixed_point : a law z on the answers that must come out as it goes in, z M = z
    target : a law on the outputs that must come out when the prior goes in
    method : "auto" takes a closed form where a theorem covers the case, "lp" never does
    zero_outputs : whether outputs may have probability zero. False demands 1/(1000 m) for the
        truth nearest to each of the m outputs; a number demands that much.
    cache : a folder in which results are kept and looked up by the hash of the problem
    progress : see `tallyveil.optimize.progress`

    Returns a `Design`. Its mechanism is private up to the rounding of doubles (certify it to
    prove it in integers), and has the properties to 1e-9 and the laws to 1e-8 absolute. Its
    lower bound is a true one. Raises `InfeasibleError`, naming an irreducible set of demands,
    if there is no such mechanism. Ctrl-C stops a solve between iterations.

    Closed forms cost O(n m). Programs on a path took time like n^1.1 to n^1.7 up to n = 321 for
    fixed epsilon (about 3.5/epsilon entries on either side of the truth are free), on complete
    graphs like n^1.1 to n^2.5, on bands like n^3.4 to n^5.3.

    >>> d = design(Query.count(5), epsilon=0.5, properties=["fair", "column_monotone"])
    >>> round(d.objective, 6), d.gap < 1e-6, d.mechanism.has("fair")
    (1.138103, True, True)
    """
    if method not in ("auto", "lp"):
        raise ArgumentError("method", "be 'auto' or 'lp'", method)
    problem = pose(query, epsilon, loss=loss, prior=prior, worst_case=worst_case,
                   side_information=side_information, properties=properties, delta=delta,
                   fixed_point=fixed_point, target=target, zero_outputs=zero_outputs)  # fmt: skip
    place = None if cache is None else _place(Path(cache), problem, method)
    if place is not None and (kept := _read(place)) is not None:
        return kept
    start = time.perf_counter()
    found = _solved(problem, method, progress)
    finished = replace(found, seconds=time.perf_counter() - start)
    if place is not None:
        _write(place, finished)
    return finished


def _solved(problem: Problem, method: str, progress: Progress) -> Design:
    if method == "auto" and (closed := shortcut(problem)) is not None:
        name, reason, mechanism, bound = closed
        objective = problem.value(mechanism.matrix)
        bound = min(bound, objective)
        gap = relative_gap(objective, bound)
        return Design(mechanism, objective, bound, gap, name, reason, 0.0, "none")
    title = f"Designing for {problem.query!r}"
    with watching(progress, title) as watch:
        found = solve_problem(problem, watch=watch)
    mechanism = Mechanism(
        found.matrix,
        problem.query,
        problem.epsilon,
        delta=problem.delta,
        name=_name(problem),
    )
    why = "No closed form is proved for this case" if method == "auto" else "Asked for"
    size = "the whole program" if found.width is None else f"tails from distance {found.width}"
    reason = f"{why}: a linear program, {size}, {found.iterations} iterations."
    bound = min(found.bound, found.objective)
    gap = relative_gap(found.objective, bound)
    return Design(mechanism, found.objective, bound, gap, "lp", reason, 0.0, found.solver)


def _name(problem: Problem) -> str:
    kind = "worst-case " if problem.worst_case else ""
    listed = ", ".join(name.replace("_", " ") for name in problem.properties)
    return f"optimal for {kind}{problem.loss} loss" + (f" ({listed})" if listed else "")


def _place(folder: Path, problem: Problem, method: str) -> Path:
    return folder / f"design-{problem.digest()[:40]}-{method}-{__version__}.json"


def _read(place: Path) -> Design | None:
    """A kept result; anything unreadable is as good as absent."""
    try:
        kept = Design.from_dict(json.loads(place.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError, TallyveilError):
        return None
    return replace(kept, seconds=0.0)


def _write(place: Path, found: Design) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    partial = place.with_suffix(f".{os.getpid()}.part")
    partial.write_text(json.dumps(found.to_dict()), encoding="utf-8")
    partial.replace(place)
