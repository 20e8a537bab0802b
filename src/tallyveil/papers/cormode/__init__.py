"""Cormode, Kulkarni and Srivastava (2018), Constrained Private Mechanisms for Count Data."""
