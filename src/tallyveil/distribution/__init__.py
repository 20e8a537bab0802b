"""Privatizing the distribution of counts: stage one of paper 002's framework."""
