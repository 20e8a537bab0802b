"""Shim."""
from tallyveil.tables.source import ArrayTable

__all__ = ["ArrayTable"]
