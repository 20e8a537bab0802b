"""The command line. One module per command; only light imports at the top of each."""

from tallyveil.cli.app import main

__all__ = ["main"]
