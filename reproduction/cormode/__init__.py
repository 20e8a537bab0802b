"""Experiments of Cormode, Kulkarni and Srivastava (2018)."""

from reproduction.cormode import (
    adult_groups,
    binomial_groups,
    closed_forms,
    learning,
    loss_designs,
    optima,
    weak_honesty,
)

__all__ = ["EXPERIMENTS"]

EXPERIMENTS = (
    *adult_groups.EXPERIMENTS,
    *binomial_groups.EXPERIMENTS,
    *closed_forms.EXPERIMENTS,
    *learning.EXPERIMENTS,
    *loss_designs.EXPERIMENTS,
    *optima.EXPERIMENTS,
    *weak_honesty.EXPERIMENTS,
)
