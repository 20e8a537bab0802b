"""How folders of receipt version 1 are checked: they have a certificate for the counts only.

The noise of other stages is proved as the program builds it, and stated figures are not worked out
again. New folders ship a certificate for every stage; see `tallyveil.publish.check`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from fractions import Fraction
from html import escape
from pathlib import Path
from typing import Any

from tallyveil.certified.load import load
from tallyveil.certified.mechanism import CertifiedAnswers
from tallyveil.errors import PackageError
from tallyveil.proof.geometric_noise import GeometricNoise
from tallyveil.publish.files import DATAPACKAGE, METHODOLOGY, RECEIPT
from tallyveil.publish.folder import CHECKSUMS
from tallyveil.publish.receipt import Receipt
from tallyveil.publish.reopen import plain_name, read_json
from tallyveil.query import Query

__all__ = ["CHECKS"]


def _require(holds: bool, problem: str) -> None:
    if not holds:
        raise PackageError(problem)


def _check_receipt(root: Path, receipt: Receipt) -> str:
    """What the document states follows from its facts, and nothing of a later version is in it."""
    data: dict[str, Any] = read_json(root / RECEIPT)
    _require(receipt.private, "the release says of itself that it is NOT PRIVATE")
    stages = [*data["stages"], *(stage for c in data["columns"] for stage in c["stages"])]
    newer = "ladder" in data or any("mechanism" in stage for stage in stages)
    _require(not newer, "the receipt is of a later version than it says")
    for stated in (data, *data["columns"], *stages):
        exact = float(Fraction(stated["epsilon_exact"]))
        _require(stated["epsilon"] == exact, "an epsilon is not the exact one beside it")
    own = [stage for column in data["columns"] for stage in column["stages"]]
    total = Fraction(data["epsilon_exact"])
    _require(data["stages"] == own and total == receipt.epsilon, "the stages do not add up")
    told = (data["promise"], data["delta"], data["multiplier"])
    _require(told == (receipt.promise, 0, receipt.multiplier), "the promise is not that of epsilon")
    expected = {receipt.table.file, DATAPACKAGE, RECEIPT, METHODOLOGY, CHECKSUMS}
    for stage in receipt.stages:
        expected |= {stage.file, stage.certificate_file}
    odd = {path.name for path in root.iterdir()} ^ expected
    _require(not odd, f"{', '.join(sorted(odd)[:3])}: in the folder or in the receipt, not in both")
    page = (root / METHODOLOGY).read_text(encoding="utf-8")
    honest = escape(receipt.promise) in page and "<script" not in page.lower()
    _require(honest, f"{METHODOLOGY} does not make the promise of the receipt")
    return (
        f"release {receipt.release} of {receipt.created}; stated figures were not worked out again"
    )


def _check_certificates(root: Path, receipt: Receipt) -> str:
    proved = []
    for column in receipt.columns:
        stage = column.counts_stage
        path = root / plain_name(stage.file)
        sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
        _require(sha256 == stage.sha256, f"{stage.file} is not the mechanism the receipt names")
        made = load(path)  # verifies it from scratch
        beside = (root / plain_name(stage.certificate_file)).read_bytes()
        same = beside == made.certificate_json().encode()
        _require(same, f"{stage.certificate_file} is not the certificate of {stage.file}")
        fits = isinstance(made, CertifiedAnswers) and made.query == Query.count(column.upper)
        _require(fits, f"{stage.file} is not for counts from 0 to {column.upper}")
        _require(made.exact_delta == 0, f"{stage.file} has a delta")
        holds = made.exact_epsilon == stage.certified_epsilon
        _require(holds, f"{stage.file} is certified at another epsilon")
        for other in column.stages[:-1]:
            problem = GeometricNoise.of(other.epsilon / receipt.multiplier).check()
            _require(problem is None, f"the noise of {other.name}: {problem}")
        proved.append(f"{column.name}: {made.exact_epsilon}")
    return "proved again in integers at epsilon " + ", ".join(proved)


CHECKS: tuple[tuple[str, Callable[[Path, Receipt], str]], ...] = (
    ("receipt", _check_receipt),
    ("certificates", _check_certificates),
)
"""What is checked in another way than in new folders."""
