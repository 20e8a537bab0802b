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

WORDS = frozenset(
    [
        "columns",
        "composition",
        "contributions",
        "created",
        "delta",
        "dp_flavor",
        "epsilon",
        "epsilon_exact",
        "float_protection",
        "format",
        "ledger",
        "model",
        "multiplier",
        "neighbours",
        "privacy_loss",
        "private",
        "program",
        "promise",
        "randomness",
        "release",
        "stages",
        "table",
        "version",
    ]
)
COLUMN_WORDS = frozenset(
    [
        "above",
        "accuracy",
        "certificate",
        "distribution",
        "epsilon",
        "epsilon_exact",
        "loss",
        "mechanism",
        "method",
        "name",
        "post_processing",
        "prior",
        "properties",
        "solver",
        "stages",
        "upper",
        "upper_source",
        "why",
    ]
)
TABLE_WORDS = frozenset(
    [
        "columns",
        "counted_by",
        "delimiter",
        "encoding",
        "file",
        "kind",
        "published_unchanged",
        "row_order",
        "rows",
        "where",
    ]
)
STAGE_WORDS = frozenset(("name", "epsilon", "epsilon_exact"))
MECHANISM_WORDS = frozenset(("file", "sha256", "name", "epsilon"))
"""All the words that receipts of version 1 have: later ones would change what the rest means."""


def _list_parts(data: dict[str, Any], stages: list[Any]) -> list[tuple[Any, frozenset[str]]]:
    """The parts of a receipt, each with the words that it has in version 1."""
    return [
        (data, WORDS),
        (data["table"], TABLE_WORDS),
        *((column, COLUMN_WORDS) for column in data["columns"]),
        *((column["mechanism"], MECHANISM_WORDS) for column in data["columns"]),
        *((stage, STAGE_WORDS) for stage in stages),
    ]


def _check_receipt(root: Path, receipt: Receipt) -> str:
    """What the document states follows from its facts, and it has the words of its version."""
    data: dict[str, Any] = read_json(root / RECEIPT)
    require(receipt.private, "the release says of itself that it is NOT PRIVATE")
    own = [stage for column in data["columns"] for stage in column["stages"]]
    stages = [*data["stages"], *own]
    newer = any(set(part) != words for part, words in _list_parts(data, stages))
    require(not newer, "the receipt does not have the words of its version, or has later ones")
    for stated in (data, *data["columns"], *stages):
        exact = float(Fraction(stated["epsilon_exact"]))
        require(stated["epsilon"] == exact, "an epsilon is not the exact one beside it")
    total = Fraction(data["epsilon_exact"])
    require(data["stages"] == own and total == receipt.epsilon, "the stages do not add up")
    told = data["promise"], data["multiplier"]
    require(told == (receipt.promise, receipt.multiplier), "the promise is not that of epsilon")
    require(data["delta"] == receipt.delta == 0, "the promise is not that of epsilon alone")
    summary = data["privacy_loss"]["privacy_parameters"], data["dp_flavor"]["name"]
    pure = {"epsilon": float(total), "delta": 0}, "Pure DP"
    require(summary == pure, "the privacy parameters are not those of the stages")
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
