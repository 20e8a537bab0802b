"""Mechanisms with a formula: one closed form, one matrix."""
