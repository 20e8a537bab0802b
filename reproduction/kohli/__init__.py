"""Experiments of Kohli and Laskowski (2026)."""

from reproduction.kohli import (
    budget_split,
    distributions,
    releases,
    robustness,
    runtime,
    theory,
)

__all__ = ["EXPERIMENTS"]

EXPERIMENTS = (
    *budget_split.EXPERIMENTS,
    *distributions.EXPERIMENTS,
    *releases.EXPERIMENTS,
    *robustness.EXPERIMENTS,
    *runtime.EXPERIMENTS,
    *theory.EXPERIMENTS,
)
