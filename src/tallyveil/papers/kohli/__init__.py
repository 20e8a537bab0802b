"""Kohli and Laskowski (2026), Preserving Target Distributions With Differentially Private
Count Mechanisms.
"""
