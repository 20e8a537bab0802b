"""Read back what was certified: verified from scratch on the way in."""

from __future__ import annotations

from pathlib import Path

from tallyveil.certified.ladder import Ladder
from tallyveil.certified.mechanism import CertifiedGeometric, CertifiedMechanism, CertifiedNoise
from tallyveil.errors import VerificationError
from tallyveil.proof import certificate as document
from tallyveil.proof.decimals import parse_table
from tallyveil.proof.geometric_noise import GeometricNoise
from tallyveil.proof.verify import read_document, verify
from tallyveil.query import Query

__all__ = ["load"]


def load(path: str | Path) -> CertifiedMechanism | CertifiedGeometric | CertifiedNoise | Ladder:
    """The certified mechanism, noise or ladder in a file.

    Parameters
    ----------
    path : str or Path
        A file that `save` wrote, such as the ``mechanism.json`` of a release folder.

    Returns
    -------
    CertifiedMechanism, CertifiedGeometric, CertifiedNoise or Ladder
        Verified from scratch. A file that does not hold raises a `VerificationError` that
        says why.
    """
    try:
        data = read_document(path)
    except ValueError as problem:
        raise VerificationError(f"{Path(path).name} is not JSON: {problem}") from None
    verdict = verify(data)  # the very document that is returned: the file is read once
    if not verdict.ok:
        raise VerificationError(f"{Path(path).name}: {verdict.reason}")
    if data["format"] == document.LADDER_FORMAT:
        return Ladder.from_verified(data)
    claim = data["certificate"]
    if claim["law"] == "noise":
        return CertifiedNoise(claim, GeometricNoise.from_dict(data["noise"]))
    if claim["law"] == "ladder":
        return Ladder.from_verified(data["ladder"], claim)
    query = Query.from_dict(claim["query"])
    if claim["law"] == "geometric":
        return CertifiedGeometric(claim, query, GeometricNoise.from_dict(data["noise"]))
    return CertifiedMechanism(claim, query, parse_table(data["weights"]))
