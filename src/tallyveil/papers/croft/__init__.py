"""Croft, Sack and Shi (2020), The Impact of Range Constraints on Utility in the Design of
Differentially Private Mechanisms.
"""
