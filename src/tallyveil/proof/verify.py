"""The trusted step: is what this file says private, checked from scratch in integers?

This module, `ratios`, `exponent`, `products`, `levels`, the reading of files in `certificate` and
`decimals` and, for noise without a matrix, `GeometricNoise.check` are all that has to be right
for a certified release to be private. They import no solver, no design code and no source of
randomness, decide nothing by comparing doubles, and believe nothing a file says about itself:
epsilon's factor, hashes, totals, ratios and the worst cell are computed again and compared.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from tallyveil.errors import ArgumentError, TallyveilError, VerificationError
from tallyveil.exact import Epsilon, exact_delta, exact_epsilon
from tallyveil.proof import certificate as document
from tallyveil.proof.costs import require_few_comparisons, require_few_products
from tallyveil.proof.exponent import Growth
from tallyveil.proof.geometric_noise import GeometricNoise
from tallyveil.proof.levels import find_broken_level
from tallyveil.proof.ratios import Verdict, check_weights
from tallyveil.proof.rounding import TOTAL_BITS
from tallyveil.query import Query
from tallyveil.untrusted import parse_json, read_file

__all__ = ["describe_findings", "read_document", "verify"]

# what reading a document of the wrong shape raises
MALFORMED = (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError)


def verify(source: str | Path | Mapping[str, Any] | Any, epsilon: Epsilon | None = None) -> Verdict:
    """Check a certified mechanism, noise or ladder from scratch, in exact integer arithmetic.

    A mechanism holds if w[i, j] <= e^epsilon w[k, j] as integers for every pair of neighbours
    i, k and every output j (or, where delta > 0 is claimed, every hockey-stick sum is at most
    delta), every row totals 2^62, the hashes match and the file is canonical byte by byte.
    Noise holds if its probabilities at whole numbers one apart keep that ratio, arbitrarily
    far out. A ladder holds if the exact product of its tables does so at every level.

    Parameters
    ----------
    source : str, Path, mapping or certified object
        Path of a mechanism file or of a certificate beside its mechanism file; a parsed
        document; or anything `tv.certify` and its kin made.
    epsilon : number, optional
        Also require the certified epsilon to be at most this.

    Returns
    -------
    Verdict
        Truthy if every check passed. Never raises for a file that does not hold: the verdict
        says why. Costs O(w n m) for a band of width w.

    Examples
    --------
    >>> verify({"format": "something else"}).reason
    'Not a certified mechanism: its format is something else.'
    """
    wanted = None if epsilon is None else exact_epsilon(epsilon)
    try:
        verdict = _judge(read_document(source))
    except VerificationError as failure:
        return Verdict(False, reason=str(failure))
    except (TallyveilError, OSError, *MALFORMED) as problem:
        reason = f"Not a readable certified mechanism: {type(problem).__name__}: {problem}"
        return Verdict(False, reason=reason)
    if verdict.ok and wanted is not None and (verdict.epsilon or wanted) > wanted:
        reason = f"It holds at epsilon {verdict.epsilon}, which is above the wanted {wanted}."
        return replace(verdict, ok=False, reason=reason)
    return verdict


def read_document(source: Any) -> Mapping[str, Any]:
    """The mechanism document in `source`, which must be canonical if it is a file.

    Nothing is proved by reading it. Raises a `VerificationError` for a file that is not
    canonical, and whatever reading raises for one that is not JSON or not there.
    """
    if isinstance(source, Mapping):
        return source
    if hasattr(source, "to_dict"):
        return dict(source.to_dict())
    if not isinstance(source, (str, Path)):
        rule = "be a path, a parsed document or a certified mechanism"
        raise ArgumentError("source", rule, got=type(source).__name__)
    path = Path(source)
    data = _read(path)
    if data.get("format") != document.CERTIFICATE_FORMAT:
        return data
    beside = path.with_name(path.name.replace("certificate", "mechanism"))
    if beside == path or not beside.exists():
        raise VerificationError(
            "A certificate alone proves nothing: its mechanism file is not beside it."
        )
    whole = _read(beside)
    if whole.get("certificate") != data:
        raise VerificationError(f"The certificate is not the one inside {beside.name} beside it.")
    return whole


def _read(path: Path) -> dict[str, Any]:
    content = read_file(path)
    data = parse_json(content, by_line=True)
    if not isinstance(data, dict):
        raise VerificationError("Not a certified mechanism: the file holds no JSON object.")
    if data.get("format") in (document.CERTIFICATE_FORMAT, document.MECHANISM_FORMAT) and (
        not document.is_canonical(data, content)
    ):
        raise VerificationError("The file is not in canonical form: some byte was changed.")
    return data


def _judge(data: Mapping[str, Any]) -> Verdict:
    """The verdict on a document; raises a `VerificationError` where it contradicts itself."""
    if data.get("format") == document.LADDER_FORMAT:
        return _judge_levels(data)
    if data.get("format") != document.MECHANISM_FORMAT:
        raise VerificationError(f"Not a certified mechanism: its format is {data.get('format')}.")
    claim = data["certificate"]
    if not _is_written(data["version"], document.VERSION) or not _is_written(
        claim["version"], document.VERSION
    ):
        raise VerificationError(f"This program reads version {document.VERSION} only.")
    if claim["format"] != document.CERTIFICATE_FORMAT or not _is_written(
        claim["total_bits"], TOTAL_BITS
    ):
        raise VerificationError("The certificate's format or number of bits is not known.")
    if claim["digest"] != document.digest(claim):
        raise VerificationError("The certificate was changed: its digest does not match.")
    epsilon, delta = exact_epsilon(claim["epsilon"]), exact_delta(claim["delta"])
    if (claim["epsilon"], claim["delta"]) != (str(epsilon), str(delta)):
        raise VerificationError("Epsilon or delta is not written as an exact rational.")
    if claim["law"] not in JUDGES or set(claim) != FIELDS | FURTHER.get(claim["law"], set()):
        raise VerificationError("The certificate has fields that do not belong to its kind.")
    growth = Growth.of(epsilon)
    if not _is_written(
        claim["growth"], {"numerator": str(growth.numerator), "shift": growth.shift}
    ):
        raise VerificationError("The factor is not the lower bound of e^epsilon.")
    part, judge = JUDGES[claim["law"]]
    if set(data) != {"format", "version", "certificate", part}:
        raise VerificationError("The file holds parts that do not belong to its kind.")
    verdict = judge(data[part], claim)
    if verdict.ok and not _same_findings(claim, describe_findings(verdict)):
        return replace(verdict, ok=False, reason="What was achieved is not what it says.")
    return verdict


def _judge_weights(lines: Any, claim: Mapping[str, Any]) -> Verdict:
    """A table of weights: hash, shape, row totals, every ratio."""
    query = _read_query(claim)
    epsilon, delta = exact_epsilon(claim["epsilon"]), exact_delta(claim["delta"])
    written = _count_characters(lines, query.shape)
    require_few_comparisons(query.neighbours, query.shape[1], delta, written)
    weights = document.read_rows(lines)
    _require_hash(document.lines_sha256(lines), claim)
    return _with_reason(check_weights(weights, query.neighbours, epsilon, delta), query)


def _judge_geometric(data: Any, claim: Mapping[str, Any]) -> Verdict:
    """Geometric noise on grid positions, then a clamp: `width` unit steps cost `width` times."""
    query = _read_query(claim)
    if not np.array_equal(query.home, query.home[0] + np.arange(query.shape[0])):
        raise VerificationError(
            "The inputs are not consecutive outputs, so noise steps are not input steps."
        )
    return _with_reason(_check_noise(data, claim, query.neighbours.width), query)


def _judge_noise(data: Any, claim: Mapping[str, Any]) -> Verdict:
    """Geometric noise added to whole numbers of which one person moves one by one."""
    stated = [claim["query"], claim["neighbours"], claim["shape"]]
    if not _is_written(stated, [document.INTEGERS, document.ONE_STEP, []]):
        raise VerificationError("Noise is certified for whole numbers and steps of one.")
    reason = "Private: noise on whole numbers, one of which moves by one, checked in integers."
    verdict = _check_noise(data, claim, 1)
    return replace(verdict, reason=reason) if verdict.ok else verdict


def _check_noise(data: Any, claim: Mapping[str, Any], steps: int) -> Verdict:
    epsilon, delta = exact_epsilon(claim["epsilon"]), exact_delta(claim["delta"])
    noise = GeometricNoise.from_dict(data)
    if dict(data) != noise.to_dict():
        raise VerificationError("The noise is not written in its one form.")
    _require_hash(document.digest(data), claim)
    if delta != 0:
        raise VerificationError("Geometric noise has a delta of 0.")
    if noise.epsilon * steps > epsilon:
        raise VerificationError(f"Neighbours {steps} steps apart cost more than epsilon.")
    problem = noise.check()
    if problem is not None:
        return Verdict(False, epsilon, delta, reason=f"Not private: {problem}.")
    return Verdict(True, epsilon, delta, float(epsilon))


def _judge_ladder(data: Any, claim: Mapping[str, Any]) -> Verdict:
    """A ladder and what is published of it: every level, or the last one alone."""
    _read_query(claim)
    if data["query"] != claim["query"] or data["epsilons"] != claim["epsilons"]:
        raise VerificationError("The ladder is not the one its certificate describes.")
    _require_hash(document.digest(data), claim)
    if data["format"] != document.LADDER_FORMAT or claim["delta"] != "0":
        raise VerificationError("A ladder has its own format and a delta of 0.")
    verdict = _judge_levels(data)
    if not verdict.ok:
        return verdict
    published = {"every level": claim["epsilons"][0], "last level": claim["epsilons"][-1]}
    if claim["epsilon"] != published.get(claim["published"]):
        raise VerificationError("The epsilon is not that of the levels that are published.")
    return replace(verdict, epsilon=exact_epsilon(claim["epsilon"]))


def _judge_levels(data: Mapping[str, Any]) -> Verdict:
    """The levels of a ladder, the whole of which costs its first and largest epsilon."""
    if not _is_written(data["version"], document.VERSION):
        raise VerificationError(f"This program reads version {document.VERSION} only.")
    if set(data) != {"format", "version", "query", "epsilons", "weights"}:
        raise VerificationError("The ladder holds parts that do not belong to it.")
    query = Query.from_dict(data["query"])
    epsilons = [exact_epsilon(text) for text in data["epsilons"]]
    if data["epsilons"] != [str(epsilon) for epsilon in epsilons]:
        raise VerificationError("The levels are not written as exact rationals.")
    size = query.shape[0]
    written = sum(_count_characters(lines, query.shape) for lines in data["weights"])
    require_few_products(size, len(epsilons), written)
    tables = [document.read_rows(lines) for lines in data["weights"]]
    problem = find_broken_level(tables, query, epsilons)
    if problem is not None:
        return Verdict(False, epsilons[0], Fraction(0), reason=problem)
    reason = (
        f"Private: {len(tables)} levels of {query.shape[0]} answers, each the exact product of "
        "its tables, checked in integers."
    )
    return Verdict(True, epsilons[0], Fraction(0), reason=reason)


JUDGES: dict[str, tuple[str, Callable[[Any, Mapping[str, Any]], Verdict]]] = {
    "weights": ("weights", _judge_weights),
    "geometric": ("noise", _judge_geometric),
    "noise": ("noise", _judge_noise),
    "ladder": ("ladder", _judge_ladder),
}
"""For each kind of certificate the part of the file that it is about, and who judges it."""

FIELDS = {
    *("format", "version", "program", "name", "query", "neighbours", "epsilon", "delta"),
    *("growth", "law", "shape", "total_bits", "weights_sha256", "loss", "digest"),
    *("achieved_epsilon", "achieved_delta", "worst"),
}
FURTHER = {"ladder": {"epsilons", "published"}}
"""The fields of every certificate, and those of some kinds."""


def describe_findings(verdict: Verdict) -> dict[str, Any]:
    """What the check found, as it stands in a certificate."""
    worst, achieved = verdict.worst, verdict.achieved_epsilon
    return {
        "achieved_epsilon": achieved if achieved is not None and math.isfinite(achieved) else None,
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
        same = type(stated) is float and abs(stated - epsilon) <= 1e-12 * max(1.0, epsilon)
    return same and all(_is_written(claim[key], found[key]) for key in ("achieved_delta", "worst"))


def _is_written(stated: Any, expected: Any) -> bool:
    """Whether a part of a file is the expected one to the letter: 1 is not 1.0, nor true."""
    return json.dumps(stated, sort_keys=True) == json.dumps(expected, sort_keys=True)


def _count_characters(lines: Any, shape: tuple[int, int]) -> int:
    """How much is written in a table, which must have this shape."""
    rows, columns = shape
    if (
        not isinstance(lines, list)
        or len(lines) != rows
        or not all(isinstance(line, str) and line.count(" ") == columns - 1 for line in lines)
    ):
        raise VerificationError(f"The weights' shape is not the query's {shape}.")
    return sum(map(len, lines))


def _read_query(claim: Mapping[str, Any]) -> Query:
    query = Query.from_dict(claim["query"])
    if not _is_written(claim["query"], query.to_dict()):
        raise VerificationError("The query is not written in its one form.")
    if not _is_written(claim["shape"], query.shape):
        raise VerificationError(f"The stated shape is not the query's {query.shape}.")
    if not _is_written(claim["neighbours"], query.neighbours.to_dict()):
        raise VerificationError("The neighbours are not those of the query.")
    return query


def _require_hash(found: str, claim: Mapping[str, Any]) -> None:
    if found != claim["weights_sha256"]:
        raise VerificationError("The weights were changed: their hash does not match.")


def _with_reason(verdict: Verdict, query: Query) -> Verdict:
    if not verdict.ok:
        return verdict
    pairs, outputs = query.neighbours.count, query.shape[1]
    reason = f"Private: {pairs} neighbour pairs and {outputs} outputs checked in integers."
    return replace(verdict, reason=reason)
