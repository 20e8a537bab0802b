"""How folders of receipt version 1 are checked: they have a certificate for the counts only.

The noise of other stages is proved as the program builds it. New folders ship a certificate
for every stage and are checked by `tallyveil.publish.check`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from tallyveil.errors import PackageError
from tallyveil.proof.geometric_noise import GeometricNoise
from tallyveil.proof.verify import verify
from tallyveil.publish.receipt import promise
from tallyveil.publish.reopen import plain_name, read_json
from tallyveil.tables.base import Table
from tallyveil.tables.source import read_table

__all__ = ["CHECKS"]


def _read(root: Path) -> dict[str, Any]:
    receipt: dict[str, Any] = read_json(root / "receipt.json")
    return receipt


def _check_receipt(root: Path) -> str:
    receipt = _read(root)
    if receipt["private"] is not True:
        raise PackageError("the release says of itself that it is NOT PRIVATE")
    return f"release {receipt['release']} of {receipt['created']}"


def _check_certificates(root: Path) -> str:
    receipt = _read(root)
    epsilons = []
    for column in receipt["columns"]:
        mechanism, claim = column["mechanism"], column["certificate"]
        path = root / plain_name(mechanism["file"])
        if hashlib.sha256(path.read_bytes()).hexdigest() != mechanism["sha256"]:
            raise PackageError(f"{mechanism['file']} is not the mechanism the receipt names")
        document = json.loads(path.read_text(encoding="utf-8"))
        beside = json.loads((root / plain_name(claim["file"])).read_text(encoding="utf-8"))
        if document["certificate"] != beside or beside["digest"] != claim["digest"]:
            raise PackageError(f"{claim['file']} is not the certificate of {mechanism['file']}")
        verdict = verify(path, epsilon=mechanism["epsilon"])
        if not verdict:
            raise PackageError(f"{mechanism['file']}: {verdict.reason}")
        outputs = beside["query"]
        if outputs.get("kind") != "count" or outputs.get("upper") != column["upper"]:
            raise PackageError(f"{mechanism['file']} is not for counts from 0 to {column['upper']}")
        _check_noise(column, receipt["multiplier"])
        epsilons.append(f"{column['name']}: {verdict.epsilon}")
    return "proved again in integers at epsilon " + ", ".join(epsilons)


def _check_noise(column: dict[str, Any], multiplier: int) -> None:
    """Prove again the noise of the stages that have no mechanism file of their own."""
    drawn = Fraction(column["mechanism"]["epsilon"]) * multiplier
    for amount in _read_amounts(column["stages"]):
        if amount != drawn:
            problem = GeometricNoise.of(amount / multiplier).check()
            if problem is not None:
                raise PackageError(f"the noise of a stage of {column['name']}: {problem}")


def _check_budget(root: Path) -> str:
    receipt = _read(root)
    total, multiplier = Fraction(receipt["epsilon_exact"]), receipt["multiplier"]
    doubled = 2 if receipt["neighbours"] == "change_one" else 1
    if multiplier != receipt["contributions"] * doubled:
        raise PackageError("the multiplier is not that of the neighbours and contributions")
    within = [stage for column in receipt["columns"] for stage in column["stages"]]
    for stated in (receipt, *receipt["stages"], *receipt["columns"], *within):
        if stated["epsilon"] != float(Fraction(stated["epsilon_exact"])):
            raise PackageError("an epsilon is not the exact one beside it")
    said = promise(total, receipt["contributions"], receipt["neighbours"])
    if receipt["promise"] != said or receipt["delta"] != 0:
        raise PackageError("the promise in words is not that of the total epsilon")
    if sum(_read_amounts(receipt["stages"])) != total:
        raise PackageError("the stages do not add up to the total epsilon")
    own = sum((sum(_read_amounts(column["stages"])) for column in receipt["columns"]), Fraction(0))
    if own != total:
        raise PackageError("the columns do not add up to the total epsilon")
    for column in receipt["columns"]:
        drawn = Fraction(column["mechanism"]["epsilon"]) * multiplier
        if drawn not in _read_amounts(column["stages"]):
            raise PackageError(f"no stage of {column['name']} pays for its mechanism")
        if abs(float(total) - receipt["privacy_loss"]["privacy_parameters"]["epsilon"]) > 1e-12:
            raise PackageError("the stated privacy parameters differ from the total")
    return f"stages and columns add up to epsilon {total}"


def _read_amounts(stages: list[dict[str, Any]]) -> list[Fraction]:
    amounts = [Fraction(stage["epsilon_exact"]) for stage in stages]
    if any(amount <= 0 for amount in amounts):
        raise PackageError("a stage spends nothing or less")
    return amounts


def _check_counts(root: Path) -> str:
    receipt = _read(root)
    table = _read_data(root, receipt)
    if table.rows != receipt["table"]["rows"]:
        raise PackageError("the data have another number of rows than the receipt says")
    for column in receipt["columns"]:
        counts = table.counts(column["name"])
        if counts.max() > column["upper"]:
            raise PackageError(f"a count of {column['name']} lies outside 0..{column['upper']}")
        histogram = np.bincount(counts, minlength=column["upper"] + 1).tolist()
        if histogram != column["distribution"]["histogram"]:
            raise PackageError(
                f"the distribution of {column['name']} is not the one in the receipt"
            )
    return f"{table.rows:,} rows, every count inside its range, distributions as stated"


def _read_data(root: Path, receipt: dict[str, Any]) -> Table:
    facts = receipt["table"]
    path = root / plain_name(facts["file"])
    return read_table(path, facts["delimiter"], facts["encoding"])


def _check_description(root: Path) -> str:
    receipt = _read(root)
    package = json.loads((root / "datapackage.json").read_text(encoding="utf-8"))
    (resource,) = package["resources"]
    content = (root / plain_name(resource["path"])).read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    if resource["bytes"] != len(content) or resource["hash"] != f"sha256:{digest}":
        raise PackageError("datapackage.json does not describe the data that is here")
    fields = [field["name"] for field in resource["schema"]["fields"]]
    if fields != list(_read_data(root, receipt).names):
        raise PackageError("datapackage.json names other columns than the data have")
    return f"{len(fields)} columns as described"


CHECKS: tuple[tuple[str, Callable[[Path], str]], ...] = (
    ("receipt", _check_receipt),
    ("certificates", _check_certificates),
    ("budget", _check_budget),
    ("published counts", _check_counts),
    ("data description", _check_description),
)
