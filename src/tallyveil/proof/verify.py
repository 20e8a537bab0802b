"""The trusted step: is what this file says private, checked from scratch in integers?

This module, `exponent`, the reading of files in `certificate` and, for laws without a matrix,
`GeometricLaw.check` are all that has to be right for a certified mechanism to be private.
They import no solver, no design code and no source of randomness, decide nothing by
comparing doubles, and believe nothing a file says about itself: epsilon's factor, hashes,
totals, ratios and the worst cell are computed again and compared.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import Integers
from tallyveil.errors import ArgumentError, TallyveilError, VerificationError
from tallyveil.exact import Epsilon, exact_delta, exact_epsilon
from tallyveil.neighbours import Neighbours
from tallyveil.proof import certificate as document
from tallyveil.proof.exponent import Growth
from tallyveil.proof.noise_law import GeometricLaw
from tallyveil.proof.rounding import TOTAL, TOTAL_BITS
from tallyveil.query import Query

__all__ = [
    "Cell",
    "Verdict",
    "broken_cell",
    "check_weights",
    "found_by",
    "hockey_stick",
    "read_document",
    "verify",
]

MALFORMED = (
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    OverflowError,
    RecursionError,
)  # what reading a document of the wrong shape raises


@dataclass(frozen=True)
class Cell:
    """The output that tells two neighbouring true answers apart best.

    `likelier` and `rarer` are input indices, `output` an output index, `weights` their two
    integer weights: the ratio is weights[0] / weights[1].
    """

    likelier: int
    rarer: int
    output: int
    weights: tuple[int, int]

    @property
    def epsilon(self) -> float:
        """ln of the ratio, in floating point; infinite beside a zero."""
        first, second = self.weights
        if second == 0:
            return math.inf if first else 0.0
        return math.log1p((first - second) / second)

    def __str__(self) -> str:
        first, second = self.weights
        ratio = first / second if second else math.inf
        return (
            f"output {self.output}: inputs {self.likelier} and {self.rarer}, "
            f"weights {first} and {second}, ratio {ratio:.12g}"
        )


@dataclass(frozen=True)
class Verdict:
    """Whether a mechanism holds what it claims; true in a condition if it does.

    Attributes
    ----------
    ok : every check passed
    epsilon, delta : the exact privacy that was checked, None if nothing readable was claimed
    achieved_epsilon : ln of the largest ratio found, in floating point, None if unknown
    achieved_delta : the exact hockey-stick bound found, where delta > 0 is claimed
    worst : the cell with the largest ratio
    reason : one sentence, what failed or what was checked
    """

    ok: bool
    epsilon: Fraction | None
    delta: Fraction | None
    achieved_epsilon: float | None
    achieved_delta: Fraction | None
    worst: Cell | None
    reason: str

    def __bool__(self) -> bool:
        return self.ok


def verify(source: str | Path | Mapping[str, Any] | Any, epsilon: Epsilon | None = None) -> Verdict:
    """Check a certified mechanism from scratch, in exact integer arithmetic.

    Every neighbour pair and every output satisfies w[i, j] <= e^epsilon w[k, j] as
    integers (or, where delta > 0 is claimed, every hockey-stick sum is at most delta); every
    row totals 2^62; the hashes match; the file is in canonical form byte by byte.

    Parameters
    ----------
    source : path of a mechanism file or of a certificate that lies beside its
        ``mechanism.json``; a parsed document; or a certified mechanism
    epsilon : also require the certified epsilon to be at most this

    Never raises for a file that does not hold: the verdict says why. Costs O(w n m) for a
    band of width w.

    >>> verify({"format": "something else"}).reason
    'Not a certified mechanism: its format is something else.'
    """
    wanted = None if epsilon is None else exact_epsilon(epsilon)
    try:
        verdict = _judge(read_document(source))
    except VerificationError as failure:
        return Verdict(False, None, None, None, None, None, str(failure))
    except (TallyveilError, OSError, *MALFORMED) as problem:
        reason = f"Not a readable certified mechanism: {type(problem).__name__}: {problem}"
        return Verdict(False, None, None, None, None, None, reason)
    if verdict.ok and wanted is not None and (verdict.epsilon or wanted) > wanted:
        reason = f"It holds at epsilon {verdict.epsilon}, which is above the wanted {wanted}."
        return replace(verdict, ok=False, reason=reason)
    return verdict


def check_weights(
    weights: Integers, neighbours: Neighbours, epsilon: Fraction, delta: Fraction = Fraction(0)
) -> Verdict:
    """Whether integer weights, shape (n, m), are (epsilon, delta)-private, exactly.

    >>> half = np.array([[2**61, 2**61], [2**61, 2**61]])
    >>> check_weights(half, Neighbours.path(2), Fraction(1)).achieved_epsilon
    0.0
    """
    fault = _row_fault(weights)
    if fault:
        return Verdict(False, epsilon, delta, None, None, None, fault)
    caps = Growth.of(epsilon).cap(weights)
    worst = _worst_cell(weights, neighbours)
    achieved = worst.epsilon
    if delta:
        units, likelier, rarer = hockey_stick(weights, caps, neighbours)
        found = Fraction(units, TOTAL)
        ok = found <= delta
        reason = (
            f"inputs {likelier} and {rarer} need delta {float(found):.6g} at epsilon "
            f"{epsilon}; claimed {float(delta):.6g}"
        )
        return Verdict(ok, epsilon, delta, achieved, found, worst,
                       "" if ok else f"Not private: {reason}.")  # fmt: skip
    broken = broken_cell(weights, caps, neighbours)
    if broken is None:
        return Verdict(True, epsilon, delta, achieved, None, worst, "")
    reason = f"Not private at epsilon {epsilon}: {broken}."
    return Verdict(False, epsilon, delta, achieved, None, broken, reason)


def read_document(source: Any) -> Mapping[str, Any]:
    """The mechanism document in `source`, which must be canonical if it is a file.

    Nothing is proved by reading it. Raises a `VerificationError` for a file that is not
    canonical, and whatever reading raises for one that is not JSON or not there.
    """
    if isinstance(source, Mapping):
        return source
    if hasattr(source, "to_dict"):
        made: Mapping[str, Any] = source.to_dict()
        return made
    if not isinstance(source, (str, Path)):
        rule = "be a path, a parsed document or a certified mechanism"
        raise ArgumentError("source", rule, type(source).__name__)
    data = _read(Path(source))
    if data.get("format") != document.CERTIFICATE_FORMAT:
        return data
    beside = Path(source).with_name("mechanism.json")
    if not beside.exists():
        raise VerificationError(
            "A certificate alone proves nothing: its mechanism.json is not beside it."
        )
    whole = _read(beside)
    if whole.get("certificate") != data:
        raise VerificationError(
            "The certificate is not the one inside the mechanism.json beside it."
        )
    return whole


def _read(path: Path) -> dict[str, Any]:
    text = path.read_bytes().decode("utf-8")
    data = json.loads(text)
    if not isinstance(data, dict):
        raise VerificationError("Not a certified mechanism: the file holds no JSON object.")
    if data.get("format") in (document.CERTIFICATE_FORMAT, document.MECHANISM_FORMAT) and (
        document.canonical(data) != text
    ):
        raise VerificationError("The file is not in canonical form: some byte was changed.")
    return data


def _judge(data: Mapping[str, Any]) -> Verdict:
    if data.get("format") != document.MECHANISM_FORMAT:
        raise VerificationError(f"Not a certified mechanism: its format is {data.get('format')}.")
    claim = data["certificate"]
    if data["version"] != document.VERSION or claim["version"] != document.VERSION:
        raise VerificationError(f"This program reads version {document.VERSION} only.")
    if claim["format"] != document.CERTIFICATE_FORMAT or claim["total_bits"] != TOTAL_BITS:
        raise VerificationError("The certificate's format or number of bits is not known.")
    if claim["digest"] != document.digest(claim):
        raise VerificationError("The certificate was changed: its digest does not match.")
    query = Query.from_dict(claim["query"])
    if claim["neighbours"] != query.neighbours.to_dict():
        raise VerificationError("The neighbours are not those of the query.")
    epsilon, delta = exact_epsilon(claim["epsilon"]), exact_delta(claim["delta"])
    growth = Growth.of(epsilon)
    if claim["growth"] != {"numerator": str(growth.numerator), "shift": growth.shift}:
        raise VerificationError("The factor is not the lower bound of e^epsilon.")
    if claim["law"] == "weights" and set(data) == {"format", "version", "certificate", "weights"}:
        verdict = _judge_weights(data["weights"], claim, query, epsilon, delta)
    elif claim["law"] == "geometric" and set(data) == {"format", "version", "certificate", "noise"}:
        verdict = _judge_noise(data["noise"], claim, query, epsilon, delta)
    else:
        raise VerificationError("The file holds parts that do not belong to its kind of law.")
    if not verdict.ok:
        return verdict
    if not _same_findings(claim, found_by(verdict)):
        return replace(verdict, ok=False, reason="What was achieved is not what it says.")
    pairs, outputs = query.neighbours.count, query.shape[1]
    reason = f"Private: {pairs} neighbour pairs and {outputs} outputs checked in integers."
    return replace(verdict, reason=reason)


def found_by(verdict: Verdict) -> dict[str, Any]:
    """What the check found, as it stands in a certificate."""
    worst = verdict.worst
    return {
        "achieved_epsilon": verdict.achieved_epsilon
        if verdict.achieved_epsilon is not None and math.isfinite(verdict.achieved_epsilon)
        else None,
        "achieved_delta": None if verdict.achieved_delta is None else str(verdict.achieved_delta),
        "worst": None
        if worst is None
        else {
            "likelier": worst.likelier,
            "rarer": worst.rarer,
            "output": worst.output,
            "weights": [str(weight) for weight in worst.weights],
        },
    }


def _same_findings(claim: Mapping[str, Any], found: Mapping[str, Any]) -> bool:
    """Integers must agree exactly; the logarithm, which no proof uses, to twelve digits."""
    stated, epsilon = claim["achieved_epsilon"], found["achieved_epsilon"]
    if stated is None or epsilon is None:
        same = stated is epsilon
    else:
        same = abs(stated - epsilon) <= 1e-12 * max(1.0, epsilon)
    return same and all(claim[key] == found[key] for key in ("achieved_delta", "worst"))


def _judge_weights(
    lines: Any, claim: Mapping[str, Any], query: Query, epsilon: Fraction, delta: Fraction
) -> Verdict:
    weights = document.read_rows(lines)
    if weights.shape != query.shape or claim["shape"] != list(query.shape):
        raise VerificationError(
            f"The weights' shape {weights.shape} is not the query's {query.shape}."
        )
    if document.weights_sha256(weights) != claim["weights_sha256"]:
        raise VerificationError("The weights were changed: their hash does not match.")
    return check_weights(weights, query.neighbours, epsilon, delta)


def _judge_noise(
    data: Any, claim: Mapping[str, Any], query: Query, epsilon: Fraction, delta: Fraction
) -> Verdict:
    """Geometric noise on grid positions, then a clamp: `width` unit steps cost `width` times."""
    law = GeometricLaw.from_dict(data)
    if dict(data) != law.to_dict() or document.digest(data) != claim["weights_sha256"]:
        raise VerificationError("The weights were changed: their hash does not match.")
    if claim["shape"] != list(query.shape) or delta != 0:
        raise VerificationError("A geometric law has the query's shape and a delta of 0.")
    if not np.array_equal(query.home, query.home[0] + np.arange(query.shape[0])):
        raise VerificationError(
            "The inputs are not consecutive outputs, so noise steps are not input steps."
        )
    if law.epsilon * query.neighbours.width > epsilon:
        raise VerificationError(
            f"Neighbours {query.neighbours.width} steps apart cost more than epsilon."
        )
    problem = law.check()
    if problem is not None:
        return Verdict(False, epsilon, delta, None, None, None, f"Not private: {problem}.")
    return Verdict(True, epsilon, delta, float(epsilon), None, None, "")


def _row_fault(weights: Integers) -> str | None:
    if weights.ndim != 2 or weights.dtype != np.int64:
        return "Weights must be a table of 64-bit integers."
    if weights.min() < 0 or weights.max() > TOTAL:
        row = int(np.argmax(((weights < 0) | (weights > TOTAL)).any(axis=1)))
        return f"Row {row} has a weight outside 0..2^{TOTAL_BITS}."
    # Two halves, because a sum of many large weights could wrap around 2^64.
    high, low = (weights >> 31).sum(axis=1), (weights & 0x7FFFFFFF).sum(axis=1)
    carry = low >> 31
    wrong = (high + carry != TOTAL >> 31) | (low & 0x7FFFFFFF != 0)
    if wrong.any():
        return f"Row {int(wrong.argmax())} does not total 2^{TOTAL_BITS}."
    return None


def broken_cell(weights: Integers, caps: Integers, neighbours: Neighbours) -> Cell | None:
    """The cell with w[i, j] > floor(ratio w[k, j]) by most in the first block that has one."""
    for i, k, top, cap in _comparisons(weights, caps, neighbours):
        excess = top - cap
        if (excess > 0).any():
            return _cell(weights, i, k, excess)
    return None


def _worst_cell(weights: Integers, neighbours: Neighbours) -> Cell:
    """The largest ratio, compared exactly among each block's float maxima."""
    floats = weights.astype(float)
    best: Cell | None = None
    for i, k, top, bottom in _comparisons(floats, floats, neighbours):
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(top == bottom, 1.0, top / bottom)
        cell = _cell(weights, i, k, ratio)
        if best is None or (cell.weights[0] * best.weights[1] > best.weights[0] * cell.weights[1]):
            best = cell
    if best is None:
        raise VerificationError("The query has no neighbours.")
    return best


def _comparisons(upper: Any, lower: Any, neighbours: Neighbours) -> Iterator[tuple[Any, ...]]:
    """Blocks (i, k, upper[i], lower[k]) that together hold every ordered neighbour pair.

    Where all pairs are neighbours, the largest of each column against the smallest decides.
    """
    if neighbours.kind == "complete":
        yield (upper.argmax(axis=0)[None, :], lower.argmin(axis=0)[None, :],
               upper.max(axis=0)[None, :], lower.min(axis=0)[None, :])  # fmt: skip
        return
    index = np.arange(len(upper))
    for first, second in neighbours.ordered_blocks():
        yield index[first][:, None], index[second][:, None], upper[first], lower[second]


def _cell(weights: Integers, i: Integers, k: Integers, measure: NDArray[Any]) -> Cell:
    """The cell of a block where `measure` is largest."""
    at, j = np.unravel_index(int(measure.argmax()), measure.shape)
    likelier = int(np.broadcast_to(i, measure.shape)[at, j])
    rarer = int(np.broadcast_to(k, measure.shape)[at, j])
    return Cell(likelier, rarer, int(j), (int(weights[likelier, j]), int(weights[rarer, j])))


def hockey_stick(weights: Integers, caps: Integers, neighbours: Neighbours) -> tuple[int, int, int]:
    """The largest sum_j max(0, w[i, j] - floor(ratio w[k, j])) in units of 2^-62, and where.

    Rounding the cap down can only raise the sum, so it bounds the true one from above.
    """
    index = np.arange(len(weights))
    worst = (-1, 0, 0)
    for first, second in neighbours.ordered_blocks():
        sums = np.maximum(weights[first] - caps[second], 0).sum(axis=1)
        at = int(sums.argmax())
        if sums[at] > worst[0]:
            worst = (int(sums[at]), int(index[first][at]), int(index[second][at]))
    return worst
