"""Mechanisms that keep the distribution of counts: paper 002's theory, algorithms and vertices."""
