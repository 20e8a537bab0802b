"""The privacy budget of every dataset, debited before any draw."""
