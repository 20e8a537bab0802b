"""The one reader of mechanism files: certified JSON, plain JSON, a CSV matrix or a ptable.

A file whose name ends in .json holds a JSON document: a certified mechanism, its certificate
beside it, or a plain mechanism. Any other file holds a matrix as CSV, or a ptable. Errors name
the file and the rule it breaks, never what the file holds: a user may give a table of
confidential counts by mistake.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tallyveil.certified.ladder import Ladder
from tallyveil.certified.load import load
from tallyveil.certified.mechanism import CertifiedGeometric, CertifiedMechanism, CertifiedNoise
from tallyveil.errors import ArgumentError, MechanismError
from tallyveil.exact import Epsilon, exact_epsilon
from tallyveil.mechanism import FORMAT, Mechanism
from tallyveil.proof.certificate import CERTIFICATE_FORMAT, LADDER_FORMAT, MECHANISM_FORMAT
from tallyveil.query import Query, require_query
from tallyveil.untrusted import parse_json, read_file

__all__ = ["read_mechanism"]

KINDS = (
    "A mechanism file is a .json written by tallyveil, or a matrix of probabilities or a ptable "
    "as .csv."
)
MALFORMED = (TypeError, ValueError, KeyError, IndexError, AttributeError, OverflowError)
"""What reading a document of the wrong shape raises."""


def read_mechanism(
    path: str | Path,
    query: Query | None = None,
    epsilon: Epsilon | None = None,
    *,
    upper: int | None = None,
) -> Mechanism | CertifiedMechanism | CertifiedGeometric | Ladder:
    """Read the mechanism in a file; a certified one is verified from scratch.

    Parameters
    ----------
    path : str or Path
        A file, or a folder with a ``mechanism.json``. A name that ends in .json is read as
        JSON, any other as a CSV matrix or a ptable.
    query : Query, optional
        What a CSV matrix or ptable answers; without one its labels are the answers and
        neighbours are adjacent. JSON files state their own.
    epsilon : exact number, optional
        The epsilon that a CSV matrix or ptable was made for. JSON files state their own.
    upper : int, optional
        The count up to which the last row of a CSV matrix or ptable goes on.

    Returns
    -------
    CertifiedMechanism, CertifiedGeometric, Ladder or Mechanism
        What was certified where the file holds that, else a plain mechanism.

    Raises
    ------
    MechanismError
        If the file holds no mechanism.
    VerificationError
        If it claims to be certified and does not verify.
    OSError
        If it cannot be opened.
    """
    if not isinstance(path, (str, Path)):
        got = "None" if path is None else f"an object of type {type(path).__name__}"
        raise ArgumentError("path", "be a path", got=got)
    file = Path(path)
    if file.is_dir():
        file = file / "mechanism.json"
    try:
        content = read_file(file)
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise _refusal(file, "be UTF-8 text") from None
    document = _parse(file, content) if file.suffix.lower() == ".json" else None
    if document is not None and document["format"] != FORMAT:
        certified = load(file)
        if isinstance(certified, CertifiedNoise):
            raise _refusal(file, "hold a mechanism: it holds noise for whole numbers")
        return certified
    if query is not None:
        require_query(query)
    stated = None if epsilon is None else exact_epsilon(epsilon)
    try:
        if document is not None:
            return Mechanism.from_dict(document)
        return Mechanism.from_csv(text.rstrip() + "\n", query, stated, upper=upper)
    except ArgumentError as problem:
        rule = f"hold a mechanism: its {problem.argument} must {problem.rule}"
        raise _refusal(file, rule) from None
    except MALFORMED:
        raise _refusal(file, "have the fields that tallyveil writes") from None


def _parse(file: Path, content: bytes) -> Mapping[str, Any]:
    """The JSON document in `content`, of a format that holds a mechanism."""
    try:
        data = parse_json(content)
    except ValueError:
        raise _refusal(file, "be a JSON document") from None
    known = (FORMAT, MECHANISM_FORMAT, CERTIFICATE_FORMAT, LADDER_FORMAT)
    if not isinstance(data, Mapping) or data.get("format") not in known:
        raise _refusal(file, "have one of the formats " + ", ".join(known))
    return data


def _refusal(file: Path, rule: str) -> MechanismError:
    return MechanismError(file.name, rule, hint=KINDS)
