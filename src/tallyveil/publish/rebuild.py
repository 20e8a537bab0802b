"""What a release folder says about itself, worked out again from the folder alone."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from tallyveil.certified.certify import load
from tallyveil.mechanism import Mechanism
from tallyveil.publish.accuracy import WIDEST_PICTURE, matched_mechanism
from tallyveil.publish.check import read_package
from tallyveil.publish.page.methodology import methodology

__all__ = ["published_mechanism", "rebuilt_methodology"]


def rebuilt_methodology(folder: str | Path) -> str:
    """The text of METHODOLOGY.html; byte for byte the one in the folder."""
    receipt = read_package(folder)
    made = [published_mechanism(folder, column) for column in receipt["columns"]]
    return methodology(receipt, [None if m is None else m.matrix for m in made])


def published_mechanism(folder: str | Path, column: dict[str, Any]) -> Mechanism | None:
    """The law of a published count given the true one, for one column of a receipt.

    The certified mechanism itself, unless ranks were matched afterwards: then the transport
    mechanism that the whole procedure amounts to in a large table. None where the range is
    too wide for a matrix.
    """
    if column["upper"] + 1 > WIDEST_PICTURE:
        return None
    if column["method"] == "preserve":
        histogram = np.array(column["distribution"]["histogram"])
        epsilon = Fraction(column["mechanism"]["epsilon"])
        return matched_mechanism(column["upper"], epsilon, histogram)
    return load(Path(folder) / Path(column["mechanism"]["file"]).name).mechanism
