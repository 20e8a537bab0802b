"""Shim."""
from typing import Any

from numpy.typing import NDArray

from tallyveil.tables.source import Table

__all__ = ["CountArray", "Table"]
CountArray = NDArray[Any]
