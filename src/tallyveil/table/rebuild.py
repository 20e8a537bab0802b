"""Build a release's methodology page again, from the release folder alone."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.release.certified import load
from tallyveil.report.methodology import methodology
from tallyveil.table.accuracy import WIDEST_PICTURE, matched_mechanism
from tallyveil.table.check import read_package

__all__ = ["rebuilt_methodology"]


def rebuilt_methodology(folder: str | Path) -> str:
    """The text of METHODOLOGY.html; byte for byte the one in the folder."""
    receipt = read_package(folder)
    return methodology(receipt, [_picture(Path(folder), column) for column in receipt["columns"]])


def _picture(folder: Path, column: dict[str, Any]) -> NDArray[np.float64] | None:
    if column["upper"] + 1 > WIDEST_PICTURE:
        return None
    if column["method"] == "preserve":
        histogram = np.array(column["distribution"]["histogram"])
        epsilon = Fraction(column["mechanism"]["epsilon"])
        matched = matched_mechanism(column["upper"], epsilon, histogram)
        return None if matched is None else matched.matrix
    return load(folder / Path(column["mechanism"]["file"]).name).mechanism.matrix
