"""Gupte and Sundararajan (2010), Universally Optimal Privacy Mechanisms for Minimax Agents."""
