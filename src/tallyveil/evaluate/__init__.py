"""Judging mechanisms and releases: metrics, distances, comparisons."""
