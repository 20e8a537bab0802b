"""Mechanisms that need no program: every closed form of the four papers."""
