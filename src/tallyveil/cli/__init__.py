"""The command line. One module per command; only light imports at the top of each.

Public names are those of the package, `tv`, which fetches their home modules on first use.
"""

import sys

INTERRUPTED = (
    "error: Interrupted. No half-written release is left; a debit that was made stays spent."
)


def main() -> None:
    """Run the program, and end quietly when it is interrupted, even while it starts."""
    try:
        from tallyveil.cli.app import run

        run()
    except KeyboardInterrupt:
        sys.exit(_interrupted())
    except SystemExit as ending:
        if ending.code == 130:  # what typer makes of an interruption
            _interrupted()
        raise


def _interrupted() -> int:
    sys.stderr.write(INTERRUPTED + "\n")
    return 130
