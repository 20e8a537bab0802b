"""How long one waits before anything happens: imports, help, a small table from end to end.

Every command is a new process, run several times in turn; the shortest times count.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.harness import (
    PROGRAM,
    Result,
    Settings,
    Table,
    Target,
    find_peer,
    list_words,
    measure_command,
)

ROWS, UPPER = 3_136, 50
FIRST_DRAW = """
import tallyveil as tv
tv.certify(tv.geometric(tv.Query.count(40), 1)).release([0, 3, 40])
"""
HELP, PRIVATIZE, CHECK = "tallyveil --help", "tallyveil privatize", "tallyveil check"


def list_commands(folder: Path) -> dict[str, list[str | Path]]:
    """List what to start, by its name in the table."""
    table = folder / "cases.csv"
    counts = np.minimum(np.random.default_rng(1).geometric(0.3, ROWS) - 1, UPPER)
    table.write_text("county,cases\n" + "".join(f"c{i},{n}\n" for i, n in enumerate(counts)))
    scripts = {
        "python": "pass",
        "import numpy": "import numpy",
        "import tallyveil": "import tallyveil",
        "import tallyveil after numpy": "import numpy, tallyveil",
        "first certified draw": FIRST_DRAW,
    }
    return {
        **{name: [sys.executable, "-c", script] for name, script in scripts.items()},
        HELP: [PROGRAM, "--help"],
        PRIVATIZE: list_words(table, UPPER),
        CHECK: [PROGRAM, "check"],
    }


def run(settings: Settings) -> Result:
    """Measure every command."""
    peers = [find_peer(name, not settings.quick) for name in ("opendp", "diffprivlib")]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        commands = list_commands(folder)
        for peer in peers:
            module = "opendp.prelude" if peer.name == "opendp" else peer.name
            if peer.python:
                commands[f"import {module}"] = [str(peer.python), "-c", f"import {module}"]
        wall, processor = dict.fromkeys(commands, np.inf), dict.fromkeys(commands, np.inf)
        for turn in range(3 if settings.quick else 7):
            for label, words in commands.items():
                last = [str(folder / f"release {turn}")] if label in (PRIVATIZE, CHECK) else []
                cost = measure_command(words + last)
                wall[label] = min(wall[label], cost.wall)
                processor[label] = min(processor[label], cost.seconds)
    over_numpy = 1000 * (wall["import tallyveil after numpy"] - wall["import numpy"])
    rows = [
        (
            label,
            f"{1000 * wall[label]:.0f}",
            f"{1000 * processor[label]:.0f}",
            f"{wall[label] / wall['import numpy']:.2f}",
        )
        for label in commands
    ]
    return Result(
        question="How long does it take to start?",
        method="New processes in turn, the shortest of several runs of each; privatize and check "
        f"do a table of {ROWS:,} rows. The last column is wall time relative to `import numpy`.",
        tables=[Table("Milliseconds", ("command", "wall", "processor", "ratio"), rows)],
        targets=[
            Target.at_most("`import tallyveil` under 150 ms over numpy", over_numpy, 150, " ms"),
            Target.at_most(f"`{HELP}` under 0.5 s of processor time", processor[HELP], 0.5, " s"),
            Target.at_most(f"{ROWS:,} rows privatized under 2 s", wall[PRIVATIZE], 2, " s"),
            Target.at_most("their release checked under 2 s", wall[CHECK], 2, " s"),
        ],
        peers={peer.name: peer.state for peer in peers},
    )
