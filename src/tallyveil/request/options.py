"""Everything a publisher can ask for: the one list of options.

`tv.privatize` takes these as arguments, the command line as options, and both hand them on as
one `ReleaseOptions`. Nothing is checked here, and nothing heavy is imported: see
`tallyveil.request.request`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from tallyveil.request.panels import ABOUT, FILE, OUTPUT, PRIVACY, SUMS, TABLE, tell

if TYPE_CHECKING:
    from tallyveil.budget.ledger import Ledger
    from tallyveil.exact import Epsilon
    from tallyveil.loss import Loss
    from tallyveil.sampling.entropy import Entropy

__all__ = ["ReleaseOptions"]

Names: TypeAlias = str | Sequence[str] | None
PerColumn: TypeAlias = Any
"""One value for all count columns, a sequence, or a mapping by column name."""


@dataclass(frozen=True)
class ReleaseOptions:
    """What is asked for, as it was written: columns, privacy, output.

    Each option is explained where it is used most: `tv.privatize`, and
    ``tallyveil privatize --help``.
    """

    count: Names = field(
        default=None, metadata=tell("Column of counts; repeat for more.", TABLE, "many")
    )
    _: KW_ONLY
    upper: PerColumn = field(
        default=None,
        metadata=tell(
            "Largest count that can be published, from public knowledge; larger ones are "
            "top-coded. Once, or once per --count. Left out: only those above a billion.",
            PRIVACY,
            "many",
        ),
    )
    epsilon: PerColumn = field(
        default=None,
        metadata=tell(
            "Privacy loss of each count column; smaller is more private. Once, or once per "
            "--count.",
            PRIVACY,
            "many",
        ),
    )
    delta: Epsilon | None = field(
        default=None,
        metadata=tell(
            "For geometric and design: the slack of (epsilon, delta)-privacy of each count column, "
            "such as 1e-6; noise then has no far tails. 0 unless given.",
            PRIVACY,
        ),
    )
    within: float | None = field(
        default=None,
        metadata=tell(
            "Instead of --epsilon: released counts lie within this many of the truth ...",
            PRIVACY,
            "number",
        ),
    )
    confidence: float = field(
        default=0.95, metadata=tell("... with this probability.", PRIVACY, "number")
    )
    levels: str | Sequence[Epsilon] | None = field(
        default=None,
        metadata=tell(
            "Privacy levels, least private first, such as 2,1,0.5.", PRIVACY, "text", "--epsilons"
        ),
    )
    method: str | Path = field(
        default="auto",
        metadata=tell("auto, preserve, geometric, fair, design, or a mechanism file.", PRIVACY),
    )
    priority: str | None = field(
        default=None,
        metadata=tell(
            "For preserve, what matters most: distribution (if left out), balanced (single counts "
            "err about as much as plain noise would) or counts.",
            PRIVACY,
        ),
    )
    tradeoff: Epsilon | None = field(
        default=None,
        metadata=tell(
            "For preserve, instead of --priority: how much error of single counts one unit of "
            "distribution error is worth. 0: the best guess for every row; from 1 on counts have "
            "exactly the estimated distribution.",
            PRIVACY,
        ),
    )
    hierarchy: Names = field(
        default=None,
        metadata=tell(
            "Public columns from coarse to fine, such as state,county: counts add up to the sums "
            "of every level, which are released as well.",
            SUMS,
        ),
    )
    invariant: Names = field(
        default=None, metadata=tell("With --hierarchy: a public level to publish exactly.", SUMS)
    )
    level_weights: str | Sequence[float] | None = field(
        default=None,
        metadata=tell(
            "With --hierarchy: how much the error of each level counts, from the grand total to "
            "the rows, such as 1,4,1. Decides which share of epsilon each gets.",
            SUMS,
        ),
    )
    bounds: str | None = field(
        default=None,
        metadata=tell(
            "With --hierarchy: a public column with the largest count of every row.", SUMS
        ),
    )
    margins: Names | Sequence[Sequence[str]] = field(
        default=None, metadata=tell("Crossing margins such as age+sex,school to add up to.", SUMS)
    )
    strata: Names = field(
        default=None, metadata=tell("Public columns whose groups keep their distribution.", SUMS)
    )
    zero: str | Sequence[str] = field(
        default=(),
        metadata=tell(
            "Rows that are 0 whatever the data say, such as 'sex = F and cause = prostate'; repeat "
            "for more. They are public, receive nothing and cost nothing.",
            SUMS,
            "many",
        ),
    )
    nested: Names = field(
        default=None,
        metadata=tell("Count columns such as deaths,cases, each part of the next.", SUMS),
    )
    loss: Loss = field(
        default="absolute",
        metadata=tell("For design: absolute, squared, zero_one, beyond:D or power:P.", PRIVACY),
    )
    properties: Sequence[str] | str = field(
        default=(),
        metadata=tell(
            "For design: a property to keep; repeat for more.", PRIVACY, "many", "--property"
        ),
    )
    neighbours: str = field(
        default="add_remove",
        metadata=tell(
            "add_remove one unit, or change_one (it moves twice as many counts: costs twice).",
            PRIVACY,
        ),
    )
    unit: str = field(
        default="person",
        metadata=tell("Who is protected: a person, or one single event, such as a visit.", PRIVACY),
    )
    contributions: int | None = field(
        default=None,
        metadata=tell(
            "How many rows one person has, or how often a person is counted in each column; 1 "
            "unless given (costs that many times).",
            PRIVACY,
            "whole",
        ),
    )
    one_row: bool = field(
        default=False,
        metadata=tell(
            "With --contributions, for geometric: all of one unit's contributions are in the same "
            "row. From 2 times epsilon on, noise made for them together errs less.",
            PRIVACY,
            "switch",
        ),
    )
    separate_rows: bool = field(
        default=False,
        metadata=tell(
            "With --delta: no two contributions in one published row; composed.", PRIVACY, "switch"
        ),
    )
    disjoint: Names | Sequence[Sequence[str]] = field(
        default=None,
        metadata=tell(
            "Count columns with commas between them of which a person is in one only: charged "
            "once; repeat for more.",
            PRIVACY,
            "many",
        ),
    )
    by: Names = field(
        default=None,
        metadata=tell(
            "Category column; without --count, rows are counted by it (microdata).", TABLE, "many"
        ),
    )
    person: str | None = field(
        default=None,
        metadata=tell(
            "Microdata with several rows of one person: the column that tells persons apart. It "
            "is not published.",
            TABLE,
        ),
    )
    rows_per_person: int | None = field(
        default=None,
        metadata=tell(
            "With --person: of each person at most this many rows are counted, chosen at random.",
            TABLE,
            "whole",
        ),
    )
    where: str | Sequence[str] = field(
        default=(),
        metadata=tell(
            "Count only rows with, for example, 'age >= 18'; repeat for more.", TABLE, "many"
        ),
    )
    categories: Any = field(
        default=None,
        metadata=tell(
            "The public list of categories: a file, or values with commas. For several columns "
            "COLUMN=VALUES each: every combination is published.",
            TABLE,
            "many",
        ),
    )
    bins: Any = field(
        default=None,
        metadata=tell(
            "Count a number by ranges that begin at these public limits, such as age=0,18,45,65 "
            "for 0-17, 18-44, 45-64 and 65+; repeat for more.",
            TABLE,
            "many",
        ),
    )
    other: str | None = field(
        default=None,
        metadata=tell(
            "The public cell for every category that is not listed, instead of a refusal.", TABLE
        ),
    )
    keep: Names = field(
        default=None,
        metadata=tell(
            "Public column to release unchanged; repeat for more, or 'all'. Other columns are not "
            "released.",
            TABLE,
            "many",
        ),
    )
    allow_duplicates: bool = field(
        default=False, metadata=tell("Rows may repeat a category.", TABLE, "switch")
    )
    allow_totals: bool = field(
        default=False,
        metadata=tell(
            "A row may be called Total, or be a parent of others: it repeats nobody.",
            TABLE,
            "switch",
        ),
    )
    delimiter: str | None = field(
        default=None, metadata=tell("What separates cells: one character, or 'tab'.", FILE)
    )
    encoding: str = field(
        default="utf-8",
        metadata=tell("The encoding of a text file; one that begins with a mark says it.", FILE),
    )
    query: str | None = field(
        default=None, metadata=tell("With --from: the query that gives the table.", FILE)
    )
    sheet: str | None = field(
        default=None, metadata=tell("The sheet of an Excel workbook, by its name.", FILE)
    )
    skip_rows: int = field(
        default=0, metadata=tell("Title lines before the header, left out.", FILE, "whole")
    )
    skip_footer: int = field(
        default=0, metadata=tell("Footnote lines at the end, left out.", FILE, "whole")
    )
    comment: str | None = field(
        default=None, metadata=tell("Lines that begin with this are left out, such as '#'.", FILE)
    )
    thousands: str | None = field(
        default=None, metadata=tell("What separates thousands in counts, such as ','.", FILE)
    )
    decimal: str = field(
        default=".", metadata=tell("What separates decimals in counts: '.' or ','.", FILE)
    )
    missing: Names = field(
        default=None,
        metadata=tell(
            "A code for a suppressed or missing count, such as '*' ('' for an empty cell); repeat "
            "for more. Rows with one are left out, and which they are is then not protected: they "
            "must be public already.",
            FILE,
            "many",
        ),
    )
    format: str | None = field(
        default=None,
        metadata=tell(
            "Write the data as csv, tsv, xlsx, parquet, arrow, dta, sav, xpt, csv.gz or csv.zst; "
            "otherwise as they came.",
            OUTPUT,
        ),
    )
    unbiased: bool = field(
        default=False,
        metadata=tell(
            "Also publish NAME_unbiased: the noisy counts before they were cut to the range or "
            "ranked. Costs nothing more.",
            OUTPUT,
            "switch",
        ),
    )
    signed: bool = field(
        default=False,
        metadata=tell(
            "Publish counts as drawn, negative ones too: every one, and every sum of them, is "
            "right on average. Without --upper, for the method geometric.",
            OUTPUT,
            "switch",
        ),
    )
    title: str | None = field(default=None, metadata=tell("What the release is called.", ABOUT))
    publisher: str | None = field(default=None, metadata=tell("Who publishes it.", ABOUT))
    contact: str | None = field(default=None, metadata=tell("Where readers can ask.", ABOUT))
    period: str | None = field(default=None, metadata=tell("Such as 2026-01.", ABOUT))
    licence: str | None = field(
        default=None, metadata=tell("What readers may do with it, such as CC-BY-4.0.", ABOUT)
    )
    out: str | Path | None = field(
        default=None, metadata=tell("The release folder; must not exist.", OUTPUT, "path")
    )
    ledger: str | Path | Ledger | None = field(
        default=None,
        metadata=tell("The budget ledger to debit: a file, or postgresql://...", OUTPUT),
        repr=False,  # an address may hold a password
    )
    dataset: str | None = field(
        default=None, metadata=tell("The dataset's name in the ledger.", OUTPUT)
    )
    confidential_report: str | Path | None = field(
        default=None,
        metadata=tell(
            "Also write the comparison with the truth, for your eyes only.", OUTPUT, "path"
        ),
    )
    entropy: Entropy | None = field(default=None, metadata=tell("", OUTPUT, "none"), repr=False)
