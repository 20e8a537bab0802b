"""Counts that add up: trees of sums, their estimates, whole numbers and budget shares."""
