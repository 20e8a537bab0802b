"""Experiments of Gupte and Sundararajan (2010)."""

from reproduction.gupte import (
    consumers,
    geometric_mechanism,
)

__all__ = ["EXPERIMENTS"]

EXPERIMENTS = (
    *consumers.EXPERIMENTS,
    *geometric_mechanism.EXPERIMENTS,
)
