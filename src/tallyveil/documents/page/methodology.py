"""METHODOLOGY.html: what was done to a table, for the people who will use it.

Built from the receipt and the certified mechanisms alone, so anyone who has the release
folder can build it again, and nothing confidential can be in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from html import escape

from tallyveil.arrays import Floats
from tallyveil.budget.entries import shown_rational
from tallyveil.documents.page.columns import (
    adding_words,
    ask_for_groups,
    column_section,
    limits_of,
    unbiased_words,
)
from tallyveil.documents.page.html import (
    list_words,
    notes,
    page,
    paragraph,
    quote,
    section,
    table,
)
from tallyveil.documents.page.steps import what_was_done
from tallyveil.documents.page.totals import name_groups, totals_section
from tallyveil.documents.receipt import FLOAT_PROTECTION, Receipt
from tallyveil.documents.records import ColumnRecord, LedgerRecord
from tallyveil.release.accuracy import WIDEST_PICTURE
from tallyveil.release.methods.preserve import show_tradeoff

__all__ = ["methodology"]

MULTIPLIED = "Every epsilon is multiplied by {0}"
TOO_LITTLE = (
    "No two moves are in one row, but composing them with a delta would gain less than a "
    "hundredth. Every epsilon is multiplied by {0}, and delta is 0"
)
COMPOSED = "Every epsilon is that of {0} draws composed, which the delta is for"


def methodology(receipt: Receipt, matrices: Sequence[Floats | None]) -> str:
    """The document for `receipt`; `matrices` holds each column's probabilities, for a picture."""
    columns = receipt.columns
    about = receipt.about
    body = [
        *([paragraph(about.title, "title")] if about.title else []),
        "<h1>How these counts were protected</h1>",
        paragraph(
            f"Methodology of a private release of {list_words([c.name for c in columns])}, "
            f"{receipt.created[:10]}.",
            "lead",
        ),
        *([paragraph(". ".join(about.lines) + ".")] if about.lines else []),
    ]
    if not receipt.private:
        body.append(paragraph(receipt.warning, "warning"))
    body += [
        _facts(receipt),
        section(
            "The promise to a person" if receipt.unit.kind == "person" else "The promise",
            paragraph(receipt.promise, "promise"),
            *_promise_notes(receipt),
        ),
        section("What was done", *what_was_done(receipt)),
        section("What may be added up", *_adding_up(receipt)),
        section("What it cost", *_costs(receipt)),
    ]
    body += totals_section(columns)
    for column, matrix in zip(columns, matrices, strict=True):
        body.append(column_section(column, matrix))
    body += [
        section("Known limitations", notes(_limitations(receipt))),
        section("To print under the table", quote(_credit(receipt))),
        section("How to check this release", *_how_to_check(receipt)),
        section("Technical record", *_record(receipt)),
        f"<footer>Release {escape(receipt.release)}, made {escape(receipt.created)} with "
        f"Tallyveil {escape(receipt.program)}. Everything in this document is "
        "computed from public or privatized values.</footer>",
    ]
    heading = f"{about.title}: how these counts were protected" if about.title else ""
    return page(heading or "How these counts were protected", "\n".join(body))


def _facts(receipt: Receipt) -> str:
    facts = [
        (f"{float(receipt.epsilon):.4g}", "epsilon in total"),
        *([(f"{float(receipt.delta):.4g}", "delta in total")] if receipt.delta else []),
        (f"{receipt.table.rows:,}", "rows published"),
        (
            str(len(receipt.columns)),
            "protected column" if len(receipt.columns) == 1 else "protected columns",
        ),
        ("certified" if receipt.private else "NOT PRIVATE", "proved in integers"),
    ]
    return (
        '<div class="facts">'
        + "".join(
            f"<div><b>{escape(value)}</b><span>{escape(name)}</span></div>" for value, name in facts
        )
        + "</div>"
    )


def _promise_notes(receipt: Receipt) -> list[str]:
    return [
        paragraph(
            f"The unit of protection is {receipt.unit_name}: {receipt.unit_moves}."
            " Smaller values of epsilon protect more; a value of 0 would reveal nothing at all."
        ),
        paragraph(
            "Published counts differ from the true ones because of this protection, and where "
            "counts were cut or rows left out, as said below. Two published counts whose "
            "intervals below overlap may well come from equal true counts."
        ),
    ]


def _costs(receipt: Receipt) -> list[str]:
    rows = [(stage.name, _amount(stage.epsilon)) for stage in receipt.stages]
    parts = [
        table(["stage", "epsilon"], [*rows, ("total", _amount(receipt.epsilon))], numbers=(1,))
    ]
    if receipt.multiplier > 1:
        together = all(column.kind.together for column in receipt.columns)
        how = "Every epsilon is for up to {0} moves" if together else MULTIPLIED
        if receipt.unit.separate:
            how = COMPOSED if receipt.unit.delta else TOO_LITTLE
        parts.append(paragraph(f"{how.format(receipt.multiplier)}: {receipt.unit_moves}."))
    parts += [
        paragraph(
            f"The publisher states that one {receipt.unit.kind} is counted in only one of the "
            f"columns {list_words(group, len(group))}. They are charged once, at the largest of "
            "their costs, and not at their sum."
        )
        for group in receipt.disjoint
    ]
    if receipt.ladder is not None:
        parts.append(paragraph(_ladder_words(receipt)))
    if receipt.delta:
        parts.append(
            paragraph(
                f"Delta {shown_rational(receipt.delta)} in total: an outcome may be more likely by "
                "that much than the factor allows. Deltas add up as epsilons do."
            )
        )
    parts.append(paragraph(_composition_words(receipt)))
    entry = receipt.ledger
    parts.append(
        paragraph(
            f"Debited before publication as entry {entry.entry} of the budget ledger for "
            f"“{entry.dataset}” (digest {entry.digest[:16]}…)."
            if entry
            else "This release was not entered in a budget ledger. Further releases of the same "
            "data add their epsilon to this one."
        )
    )
    if entry and receipt.composed is not None:
        parts.append(paragraph(_account_words(receipt, entry)))
    return parts


def _composition_words(receipt: Receipt) -> str:
    """How the amounts of the stages come to the total, for people."""
    if receipt.ladder is not None:
        return "Every level is drawn from the one before, so all together cost what the first does."
    each = "sum of a level" if receipt.sums is not None else "row of a column"
    return (
        f"The amounts of the stages add up. Every {each} has the same amount, which is paid once: "
        f"one move of one {receipt.unit.kind} changes one of them."
    )


def _account_words(receipt: Receipt, entry: LedgerRecord) -> str:
    """What all releases of a dataset keep together, where epsilons do not simply add up."""
    how = {
        "exact": "by exact composition of a plan that was fixed before the first release",
        "zcdp": "by zero-concentrated privacy (zCDP)",
    }
    delta, composed = shown_rational(entry.total_delta), receipt.composed or receipt.epsilon
    return (
        f"All releases entered for “{entry.dataset}” together keep epsilon "
        f"{shown_rational(entry.total_epsilon)} with a delta of {delta}, {how[entry.accounting]}. "
        f"A delta is the chance that the promise may fail. With that delta, the stages of this "
        f"release alone keep epsilon {shown_rational(composed)}."
    )


def _ladder_words(receipt: Receipt) -> str:
    """Which level this is, and what readers of several levels learn."""
    if receipt.ladder is None:
        return ""
    level, epsilons = receipt.ladder.level, receipt.ladder.epsilons
    listed = ", ".join(f"{float(epsilon):g}" for epsilon in epsilons)
    return (
        f"This is level {level} of {len(epsilons)} levels of one release, at epsilon {listed} for "
        "one move of one count. The promise above is about this level alone. Somebody who holds "
        "several levels learns no more than the least private of them says."
    )


def _adding_up(receipt: Receipt) -> list[str]:
    """Which published values may be added, and what to ask for where they may not."""
    apart = [part for c in receipt.columns if not c.kind.adds_up for part in adding_words(c)]
    if receipt.sums is None:
        return apart
    together = [c for c in receipt.columns if c.kind.adds_up]
    parts = [
        paragraph(
            f"Published values of {list_words([c.name for c in together])} may be added within the "
            "groups that have a file of sums: they add up to it exactly."
        )
    ]
    drawn = [c for c in together if c.unbiased is not None]
    parts += [paragraph(unbiased_words(column)) for column in drawn]
    parts += [
        paragraph(f"Totals of {column.name} {shown}, with intervals, stand below.")
        for column in together
        if (shown := name_groups(column))
    ]
    parts.append(
        paragraph(
            "Estimates with intervals that hold, for the groups that any column published "
            "unchanged makes:"
            if drawn
            else "Other groups have estimates with intervals that hold where they are made of "
            "those, as regions are of states. Sums of groups that cut through them have none."
        )
    )
    return [*parts, *(ask_for_groups(column) for column in together), *apart]


def _credit(receipt: Receipt) -> str:
    """What a publisher can print under the table."""
    names = list_words([column.name for column in receipt.columns])
    adding = (
        "Published counts add up to the published sums."
        if all(column.kind.adds_up for column in receipt.columns)
        else "Do not add them up: estimates of totals, with intervals, can be had from the release."
    )
    return (
        f"The counts of {names} are protected by differential privacy (epsilon "
        f"{float(receipt.epsilon):.4g} for one {receipt.unit.kind}) and differ from the true "
        f"counts by random noise. METHODOLOGY.html says by how much. {adding}"
    )


def _limitations(receipt: Receipt) -> list[str]:
    facts = receipt.table
    found = [
        *receipt.unit_limits,
        "The number of rows and the columns published unchanged are not protected.",
        "Other releases made from the same data add up with this one.",
        "Facts about groups, such as a county having many cases, are meant to stay visible.",
        *(limit for column in receipt.columns for limit in limits_of(column)),
        "Random bits come from a cipher keyed by the operating system, so the promise is exact "
        "for ideal random bits and holds in practice for anyone who cannot break AES-256.",
    ]
    if facts.counted_by:
        found.append("The conditions and the list of categories were chosen by the publisher.")
    return found


def _how_to_check(receipt: Receipt) -> list[str]:
    return [
        paragraph(
            f"Anyone can check this release offline, with the program Tallyveil {receipt.program}. "
            "Take it from where the publisher says it is to be had: anybody may offer something "
            "else under its name. The program that made this release has this fingerprint, a hash "
            "of its source files, which the first command prints and the second compares:"
        ),
        f"<pre>{escape(receipt.fingerprint)}</pre>",
        "<pre>tallyveil --version\ntallyveil check .</pre>",
        paragraph(
            "The check compares the checksums, proves every certificate again in whole numbers, "
            "and works out again what the documents state."
        ),
        paragraph("Without it, the checksums alone can be compared with:"),
        "<pre>sha256sum --check SHA256SUMS</pre>",
        paragraph(_reading(receipt)),
    ]


def _reading(receipt: Receipt) -> str:
    """How to read one published count."""
    name = receipt.columns[0].name if len(receipt.columns) == 1 else "NAME"
    return (
        "What a single published count says about the true one, from this folder: tallyveil "
        f"interpret --released COUNT --mechanism . --column {name}"
    )


def _no_properties(column: ColumnRecord) -> str:
    wide = column.upper + 1 > WIDEST_PICTURE
    return "not worked out for so wide a range" if wide else "none of the named ones"


def _record(receipt: Receipt) -> list[str]:
    parts = []
    for column in receipt.columns:
        held, stage = column.properties, column.counts_stage
        achieved = stage.achieved_epsilon
        rows = [
            ("method", f"{column.method} ({column.why})"),
            ("mechanism", f"{stage.mechanism}, counts {column.range_words}"),
            ("file", f"{stage.file}, SHA-256 {stage.sha256}"),
            ("certificate", f"{stage.certificate_file}, digest {stage.digest}"),
            (
                "epsilon certified",
                f"{stage.certified_epsilon}"
                + (f", delta {stage.delta}" if stage.delta else "")
                + ("" if achieved is None or stage.delta else f" (largest found {achieved:.6g})"),
            ),
            ("loss, prior", f"{column.loss}, {column.prior}"),
            ("properties", ", ".join(held) if held else _no_properties(column)),
            ("made by", column.solver),
        ]
        if column.tradeoff is not None:
            rows.append(("tradeoff", show_tradeoff(column.tradeoff)))
        parts.append(section(column.name, table([], rows), level=3))
    parts.append(paragraph(f"Randomness: {receipt.randomness}."))
    parts.append(paragraph(f"Floating point: {FLOAT_PROTECTION}."))
    return parts


def _amount(epsilon: Fraction) -> str:
    return f"{float(epsilon):.6g}"  # the receipt has it exactly
