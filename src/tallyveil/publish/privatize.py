"""The main job: a table of counts in, a private table of the same kind out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tallyveil.budget.ledger import Ledger
from tallyveil.exact import Epsilon
from tallyveil.loss import Loss
from tallyveil.publish.prepare import prepare
from tallyveil.publish.release import Release
from tallyveil.sampling.entropy import Entropy

__all__ = ["privatize"]


def privatize(
    table: Any,
    count: str | Sequence[str] | None = None,
    *,
    upper: Any,
    epsilon: Any = None,
    within: float | None = None,
    confidence: float = 0.95,
    method: str | Path = "auto",
    loss: Loss = "absolute",
    properties: Sequence[str] | str = (),
    neighbours: str = "add_remove",
    contributions: int = 1,
    above: str = "top_code",
    upper_epsilon: Epsilon | None = None,
    by: str | Sequence[str] | None = None,
    where: str | Sequence[str] = (),
    categories: Any = None,
    order: str = "input",
    keep: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    allow_duplicates: bool = False,
    delimiter: str | None = None,
    encoding: str = "utf-8",
    ledger: str | Path | Ledger | None = None,
    dataset: str | None = None,
    entropy: Entropy | None = None,
) -> Release:
    """A private version of a table of counts, of the kind that came in, with its receipt.

    Parameters
    ----------
    table : a path (CSV, TSV, Parquet, Arrow), an Arrow, pandas or Polars table, or a
        one-dimensional array of counts
    count : the column of counts, or several; not needed for an array, nor for microdata
    upper : the largest count that can be published. It must be public; "auto" finds it with a
        private quantile for `upper_epsilon`
    epsilon : the privacy loss of each count column; exact (0.1 means 1/10)
    within, confidence : instead of epsilon: released counts lie within this many of the true
        ones with this probability
    method : "preserve" (keeps the distribution of counts), "geometric", "fair", "design" (uses
        `loss` and `properties`), a mechanism file, or "auto", which looks at sizes only
    neighbours : "add_remove" one person, or "change_one" record (moves two cells: costs twice)
    contributions : in how many cells one person may be counted (costs that many times)
    above : "top_code" counts above `upper`, or "refuse" the table
    by, where, categories : microdata, one row per person: the columns to count by, conditions
        such as "age >= 18", and the public list of categories. With `count`, `by` names the
        category columns of a table that is already aggregated
    order : "input" keeps the rows' order, "sorted" sorts by the other columns
    keep, drop : which other columns are published, unchanged
    allow_duplicates : two rows may carry the same labels
    ledger, dataset : a budget to debit before anything is drawn

    `upper` and `epsilon` may be given per count column, as a sequence or a mapping.

    Guaranteed: differential privacy with the epsilon of the receipt for one person, proved in
    integers; everything returned depends on the confidential table through the certified
    draws alone. Costs O(rows) plus the estimate of the distribution.

    >>> rel = privatize([0, 3, 0, 7, 1] * 100, upper=9, epsilon=1)
    >>> len(rel.table), 0 <= min(rel.table) <= max(rel.table) <= 9, rel.receipt["epsilon"]
    (500, True, 1.0)
    """
    options = {
        "count": count, "upper": upper, "epsilon": epsilon, "within": within,
        "confidence": confidence, "method": method, "loss": loss, "properties": properties,
        "neighbours": neighbours, "contributions": contributions, "above": above,
        "upper_epsilon": upper_epsilon, "by": by, "where": where, "categories": categories,
        "order": order, "keep": keep, "drop": drop, "allow_duplicates": allow_duplicates,
    }  # fmt: skip
    prepared = prepare(table, options, delimiter=delimiter, encoding=encoding)
    return prepared.release(ledger, dataset, entropy=entropy)
