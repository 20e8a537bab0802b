"""Inference from a release."""
