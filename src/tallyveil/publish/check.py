"""Check a release folder offline, trusting nothing that it says about itself."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from tallyveil.errors import PackageError, TallyveilError
from tallyveil.proof.noise_law import GeometricLaw
from tallyveil.proof.verify import verify
from tallyveil.publish.folder import CHECKSUMS
from tallyveil.publish.receipt import RECEIPT_FORMAT, promise
from tallyveil.tables.base import Table
from tallyveil.tables.source import read_table

__all__ = ["Finding", "check_package", "read_package"]

REQUIRED = ("datapackage.json", "mechanism.json", "certificate.json", "receipt.json",
            "METHODOLOGY.html", CHECKSUMS)  # fmt: skip


@dataclass(frozen=True)
class Finding:
    """One thing that was checked, and how it came out."""

    name: str
    ok: bool
    detail: str

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {"check": self.name, "ok": self.ok, "detail": self.detail}


class _FailedError(Exception):
    """A check that failed; its text says why."""


def check_package(folder: str | Path) -> list[Finding]:
    """Every check of the release in `folder`, in order; later ones need the earlier.

    Checksums and completeness; certificates proved again in integers; budgets that add up;
    published counts inside their ranges; the published distribution; the data description.
    """
    root = Path(folder)
    if not root.is_dir():
        raise PackageError(f"There is no release folder {str(folder)!r}.")
    checks: list[tuple[str, Callable[[Path], str]]] = [
        ("files and checksums", _checksums),
        ("receipt", _receipt_holds),
        ("certificates", _certificates),
        ("budget", _budget),
        ("published counts", _counts),
        ("data description", _description),
    ]
    findings: list[Finding] = []
    for name, check in checks:
        try:
            findings.append(Finding(name, True, check(root)))
        except _FailedError as problem:
            findings.append(Finding(name, False, str(problem)))
        except (TallyveilError, OSError, ValueError, KeyError, TypeError, IndexError) as problem:
            detail = f"cannot be checked: {type(problem).__name__}: {problem}"
            findings.append(Finding(name, False, detail))
    return findings


def read_package(folder: str | Path) -> dict[str, Any]:
    """The receipt of the release in `folder`, or a `PackageError`."""
    path = Path(folder) / "receipt.json"
    try:
        receipt = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise PackageError(f"{str(folder)!r} holds no readable receipt.json.") from None
    if not isinstance(receipt, dict) or receipt.get("format") != RECEIPT_FORMAT:
        raise PackageError(f"{str(folder)!r} is not a Tallyveil release.")
    return receipt


def _checksums(root: Path) -> str:
    present = {path.name for path in root.iterdir()}
    for name in REQUIRED:
        if name not in present:
            raise _FailedError(f"{name} is missing")
    listed = {}
    for line in (root / CHECKSUMS).read_text(encoding="utf-8").splitlines():
        value, _, name = line.partition("  ")
        if "/" in name or "\\" in name or name in listed:
            raise _FailedError(f"{CHECKSUMS} has a line that is not a plain file name")
        listed[name] = value
    if set(listed) != present - {CHECKSUMS}:
        odd = sorted(set(listed) ^ (present - {CHECKSUMS}))[0]
        raise _FailedError(f"{odd} is in the folder or in {CHECKSUMS}, but not in both")
    for name, value in listed.items():
        if hashlib.sha256((root / name).read_bytes()).hexdigest() != value:
            raise _FailedError(f"{name} was changed: its checksum does not match")
    return f"{len(listed)} files, none missing, none changed, none added"


def _receipt_holds(root: Path) -> str:
    receipt = read_package(root)
    if receipt["version"] != 1:
        raise _FailedError("the receipt has a version that this program does not read")
    if receipt["private"] is not True:
        raise _FailedError("the release says of itself that it is NOT PRIVATE")
    return f"release {receipt['release']} of {receipt['created']}"


def _certificates(root: Path) -> str:
    receipt = read_package(root)
    epsilons = []
    for column in receipt["columns"]:
        mechanism, claim = column["mechanism"], column["certificate"]
        path = root / _plain(mechanism["file"])
        if hashlib.sha256(path.read_bytes()).hexdigest() != mechanism["sha256"]:
            raise _FailedError(f"{mechanism['file']} is not the mechanism the receipt names")
        document = json.loads(path.read_text(encoding="utf-8"))
        beside = json.loads((root / _plain(claim["file"])).read_text(encoding="utf-8"))
        if document["certificate"] != beside or beside["digest"] != claim["digest"]:
            raise _FailedError(f"{claim['file']} is not the certificate of {mechanism['file']}")
        verdict = verify(path, epsilon=mechanism["epsilon"])
        if not verdict:
            raise _FailedError(f"{mechanism['file']}: {verdict.reason}")
        outputs = beside["query"]
        if outputs.get("kind") != "count" or outputs.get("upper") != column["upper"]:
            raise _FailedError(f"{mechanism['file']} is not for counts from 0 to {column['upper']}")
        _noise_laws(column, receipt["multiplier"])
        epsilons.append(f"{column['name']}: {verdict.epsilon}")
    return "proved again in integers at epsilon " + ", ".join(epsilons)


def _noise_laws(column: dict[str, Any], multiplier: int) -> None:
    """Prove again the noise of the stages that have no mechanism file of their own."""
    drawn = Fraction(column["mechanism"]["epsilon"]) * multiplier
    for amount in _amounts(column["stages"]):
        if amount != drawn:
            problem = GeometricLaw.of(amount / multiplier).check()
            if problem is not None:
                raise _FailedError(f"the noise of a stage of {column['name']}: {problem}")


def _budget(root: Path) -> str:
    receipt = read_package(root)
    total, multiplier = Fraction(receipt["epsilon_exact"]), receipt["multiplier"]
    doubled = 2 if receipt["neighbours"] == "change_one" else 1
    if multiplier != receipt["contributions"] * doubled:
        raise _FailedError("the multiplier is not that of the neighbours and contributions")
    within = [stage for column in receipt["columns"] for stage in column["stages"]]
    for stated in (receipt, *receipt["stages"], *receipt["columns"], *within):
        if stated["epsilon"] != float(Fraction(stated["epsilon_exact"])):
            raise _FailedError("an epsilon is not the exact one beside it")
    said = promise(total, receipt["contributions"], receipt["neighbours"])
    if receipt["promise"] != said or receipt["delta"] != 0:
        raise _FailedError("the promise in words is not that of the total epsilon")
    if sum(_amounts(receipt["stages"])) != total:
        raise _FailedError("the stages do not add up to the total epsilon")
    own = sum((sum(_amounts(column["stages"])) for column in receipt["columns"]), Fraction(0))
    if own != total:
        raise _FailedError("the columns do not add up to the total epsilon")
    for column in receipt["columns"]:
        drawn = Fraction(column["mechanism"]["epsilon"]) * multiplier
        if drawn not in _amounts(column["stages"]):
            raise _FailedError(f"no stage of {column['name']} pays for its mechanism")
        if abs(float(total) - receipt["privacy_loss"]["privacy_parameters"]["epsilon"]) > 1e-12:
            raise _FailedError("the stated privacy parameters differ from the total")
    return f"stages and columns add up to epsilon {total}"


def _amounts(stages: list[dict[str, Any]]) -> list[Fraction]:
    amounts = [Fraction(stage["epsilon_exact"]) for stage in stages]
    if any(amount <= 0 for amount in amounts):
        raise _FailedError("a stage spends nothing or less")
    return amounts


def _counts(root: Path) -> str:
    receipt = read_package(root)
    table = _data(root, receipt)
    if table.rows != receipt["table"]["rows"]:
        raise _FailedError("the data have another number of rows than the receipt says")
    for column in receipt["columns"]:
        counts = table.counts(column["name"])
        if counts.max() > column["upper"]:
            raise _FailedError(f"a count of {column['name']} lies outside 0..{column['upper']}")
        histogram = np.bincount(counts, minlength=column["upper"] + 1).tolist()
        if histogram != column["distribution"]["histogram"]:
            raise _FailedError(
                f"the distribution of {column['name']} is not the one in the receipt"
            )
    return f"{table.rows:,} rows, every count inside its range, distributions as stated"


def _data(root: Path, receipt: dict[str, Any]) -> Table:
    facts = receipt["table"]
    path = root / _plain(facts["file"])
    return read_table(path, facts["delimiter"], facts["encoding"])


def _description(root: Path) -> str:
    receipt = read_package(root)
    package = json.loads((root / "datapackage.json").read_text(encoding="utf-8"))
    (resource,) = package["resources"]
    content = (root / _plain(resource["path"])).read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    if resource["bytes"] != len(content) or resource["hash"] != f"sha256:{digest}":
        raise _FailedError("datapackage.json does not describe the data that is here")
    fields = [field["name"] for field in resource["schema"]["fields"]]
    if fields != list(_data(root, receipt).names):
        raise _FailedError("datapackage.json names other columns than the data have")
    return f"{len(fields)} columns as described"


def _plain(name: str) -> str:
    """`name` if it names a file in the folder itself."""
    if not name or "/" in name or "\\" in name or name in (".", ".."):
        raise _FailedError("a file name in the receipt points outside the folder")
    return name
