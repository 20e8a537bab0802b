"""Experiments of Croft, Sack and Shi (2020)."""

from reproduction.croft import (
    expected_loss,
    extended_range,
    family_sizes,
    matrices,
)

__all__ = ["EXPERIMENTS"]

EXPERIMENTS = (
    *expected_loss.EXPERIMENTS,
    *extended_range.EXPERIMENTS,
    *family_sizes.EXPERIMENTS,
    *matrices.EXPERIMENTS,
)
