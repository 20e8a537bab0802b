"""What a checked release is, what a check shows, and what no check can show."""

from __future__ import annotations

from pathlib import Path

from tallyveil.fingerprint import fingerprint
from tallyveil.release.datapackage import RECEIPT
from tallyveil.release.release import read_receipt

PROMISED = (
    "The files are those of the receipt; each draw was certified private at the epsilon stated.",
    "The amounts add up, and every document follows from the receipt's facts.",
)
NOT_SHOWN = (
    "that the counts were really drawn from the certified mechanisms, once, from the true table",
    "how often and in which columns a person was counted, and that a given upper bound did not "
    "come from the data",
    "names, times, remarks, rows left out for a missing count, and which program it was; what else "
    "was released from the same data",
)


def describe_checked(folder: Path) -> dict[str, str]:
    """What was asked, who is protected and by which program, of a folder that checks."""
    first = folder if (folder / RECEIPT).exists() else min(folder.glob("level-1-*"))
    receipt = read_receipt(first)
    ranges = (f"{column.name} {column.range_words}" for column in receipt.columns)
    program = receipt.program
    same = "this very program" if program.fingerprint == fingerprint() else "not this program"
    return {
        "query": f"counts in {receipt.table.rows:,} rows: {', '.join(ranges)}",
        "neighbours": receipt.unit_moves,
        "unit": receipt.unit_name,
        "promise": receipt.promise,
        "program": f"tallyveil {program.version}, fingerprint {program.fingerprint}: {same}",
    }
