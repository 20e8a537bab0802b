"""How folders of receipt version 1 are checked: they have a certificate for the counts only.

The noise of other stages is proved as the program builds it, and stated figures are not worked out
again. New folders ship a certificate for every stage; see `tallyveil.check.package`.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from html import escape
from pathlib import Path
from typing import Any

from tallyveil.certified.base import Certified
from tallyveil.certified.mechanism import CertifiedAnswers
from tallyveil.documents.files import METHODOLOGY, RECEIPT
from tallyveil.documents.receipt import Receipt
from tallyveil.proof.geometric_noise import LONGEST_BLOCK, GeometricNoise
from tallyveil.publish.reopen import prove_stage, read_json, require, require_listed_files
from tallyveil.query import Query
from tallyveil.untrusted import read_file

__all__ = ["CHECKS"]

NEWER = {
    "ladder",
    "hierarchy",
    "structural_zeros",
    "strata",
    "unit",
    "disjoint",
    "matching",
    "unbiased",
    "total",
}
"""Words that no receipt of version 1 has."""


def _check_receipt(root: Path, receipt: Receipt) -> str:
    """What the document states follows from its facts, and nothing of a later version is in it."""
    data: dict[str, Any] = read_json(root / RECEIPT)
    require(receipt.private, "the release says of itself that it is NOT PRIVATE")
    stages = [*data["stages"], *(stage for c in data["columns"] for stage in c["stages"])]
    newer = not NEWER.isdisjoint(data) or any("mechanism" in stage for stage in stages)
    newer |= any(not NEWER.isdisjoint(column) for column in data["columns"])
    require(not newer, "the receipt is of a later version than it says")
    for stated in (data, *data["columns"], *stages):
        exact = float(Fraction(stated["epsilon_exact"]))
        require(stated["epsilon"] == exact, "an epsilon is not the exact one beside it")
    own = [stage for column in data["columns"] for stage in column["stages"]]
    total = Fraction(data["epsilon_exact"])
    require(data["stages"] == own and total == receipt.epsilon, "the stages do not add up")
    told = (data["promise"], data["delta"], data["multiplier"])
    require(told == (receipt.promise, 0, receipt.multiplier), "the promise is not that of epsilon")
    require_listed_files(root, receipt)
    page = read_file(root / METHODOLOGY).decode("utf-8")
    honest = escape(receipt.promise) in page and "<script" not in page.lower()
    require(honest, f"{METHODOLOGY} does not make the promise of the receipt")
    return (
        f"release {receipt.release} of {receipt.created}; stated figures were not worked out again"
    )


def _check_certificates(root: Path, receipt: Receipt) -> str:
    proved = []
    by_file: dict[str, Certified] = {}
    rates = {s.epsilon / receipt.multiplier for c in receipt.columns for s in c.stages[:-1]}
    few = sum(min(22 / float(rate), float(LONGEST_BLOCK)) for rate in rates) <= 2 * LONGEST_BLOCK
    require(few, "the noise of its stages would take too long to build")
    for column in receipt.columns:
        stage = column.counts_stage
        made = prove_stage(root, stage, by_file)
        fits = isinstance(made, CertifiedAnswers) and made.query == Query.count(column.upper)
        require(fits, f"{stage.file} is not for counts from 0 to {column.upper}")
        for other in column.stages[:-1]:
            problem = GeometricNoise.of(other.epsilon / receipt.multiplier).check()
            require(problem is None, f"the noise of {other.name}: {problem}")
        proved.append(f"{column.name}: {made.exact_epsilon}")
    return "proved again in integers at epsilon " + ", ".join(proved)


CHECKS: tuple[tuple[str, Callable[[Path, Receipt], str]], ...] = (
    ("receipt", _check_receipt),
    ("certificates", _check_certificates),
)
"""What is checked in another way than in new folders."""
