"""What every command shares: the consoles, JSON output and errors in one paragraph.

Exit codes: 0 done; 1 the answer is no (a check or verification failed, a budget is spent,
the input was refused); 2 the command line itself was wrong.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from rich.console import Console

__all__ = ["errors", "fail", "out", "print_json"]

out = Console(highlight=False, soft_wrap=True)
errors = Console(stderr=True, highlight=False, soft_wrap=True)


def print_json(data: Any) -> None:
    """`data` on standard output as JSON, and nothing else there."""
    sys.stdout.write(json.dumps(data, indent=2, allow_nan=False, default=str) + "\n")


def fail(message: str, code: int = 1) -> int:
    """Say in one paragraph on standard error what went wrong; return the exit code."""
    errors.print("[bold red]error:[/] ", end="")
    errors.print(" ".join(message.split()), markup=False)
    return code
