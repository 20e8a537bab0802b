"""Method auto: preserve or geometric, whichever is predicted to be more accurate."""

from __future__ import annotations

from tallyveil.release.methods.base import Method

__all__ = ["Auto"]


class Auto(Method, frozen=True, tag="auto"):
    """Take preserve or geometric by public sizes: rows, range and epsilon."""
