"""HTML for notebooks: a matrix as a heatmap, a distribution as bars, and tables.

Plain HTML and SVG without scripts, style sheets or ids. Text has the colour of the page and
cells are one colour of varying opacity, so that light and dark pages are both readable. All text
is escaped, and equal data gives equal bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import Floats, Integers

__all__ = ["show_distribution", "show_matrix", "show_table"]

ACCENT = "#7c5cd6"
"""Colour of cells and bars: dark enough on white, light enough on black."""

MARK = "#e0566b"
"""Colour of the mark at the released value."""

FONT = "font-family:system-ui,-apple-system,'Segoe UI',Roboto,sans-serif"
MOST_CELLS = 64
"""Larger matrices are drawn with this many rows and columns of cells at the most."""

MOST_NUMBERS = 9
"""Up to this many rows and columns cells also show their probability."""

SHADES = 16
"""Distinct opacities of cells; cells of one shade are one SVG path."""

MOST_BARS = 120
"""Bars drawn at the most; further answers are left out on both sides."""


def show_matrix(
    matrix: Floats, inputs: NDArray[Any], outputs: NDArray[Any], title: str, about: str = ""
) -> str:
    """Draw probabilities as a heatmap, true answers down, released answers across.

    A large matrix is drawn in groups of adjacent answers: the probability of a group of
    released answers, averaged over a group of true answers.
    """
    down, across = _group_starts(matrix.shape[0]), _group_starts(matrix.shape[1])
    sizes = np.diff(np.append(down, matrix.shape[0]))
    cells = np.add.reduceat(np.add.reduceat(matrix, across, axis=1), down, axis=0)
    cells = cells / sizes[:, None]
    n, m = cells.shape
    side = 36.0 if max(n, m) <= MOST_NUMBERS else max(4.0, min(16.0, 320 / max(n, m)))
    left, top = 56.0, 8.0
    width, height = side * m, side * n
    highest = float(cells.max())
    parts = [
        f'<rect x="{left:g}" y="{top:g}" width="{width:g}" height="{height:g}" fill="{ACCENT}" '
        'fill-opacity="0.04"/>',
        *_draw_cells(cells, highest, side, left, top),
        *_draw_numbers(cells, highest, side, left, top),
        *_label_columns(outputs, width, left, top + height + 14),
        *_label_rows(inputs, height, left - 6, top),
        _text(left + width / 2, top + height + 30, "released answer"),
        f'<g transform="translate(14,{top + height / 2:g}) rotate(-90)">'
        + _text(0, 0, "true answer")
        + "</g>",
        *_draw_scale(highest, left + width + 18, top, min(height, 120.0)),
    ]
    groups = matrix.shape != cells.shape
    note = f"{n} × {m} groups of adjacent answers" if groups else ""
    size = (left + width + 74, top + height + 38)
    return _figure(parts, size, title, " · ".join(filter(None, (about, note))))


def show_distribution(
    answers: Floats,
    distribution: Floats,
    interval: tuple[float, float],
    released: float,
    *,
    title: str,
    about: str = "",
) -> str:
    """Draw a distribution as bars, those in `interval` dark, with the released value marked.

    Answers without visible probability are left out.
    """
    highest = float(distribution.max())
    visible = np.flatnonzero((distribution >= 2e-3 * highest) | (answers == released))
    first, last = int(visible[0]), int(visible[-1]) + 1
    if last - first > MOST_BARS:
        middle = int(distribution.argmax())
        first = max(first, middle - MOST_BARS // 2)
        last = min(last, first + MOST_BARS)
    shown, chances = answers[first:last], distribution[first:last]
    left, top, height = 52.0, 20.0, 150.0
    step = max(5.0, min(26.0, 480 / len(shown)))
    width = step * len(shown)
    parts = []
    for level in (0.5, 1.0):
        y = top + height * (1 - level)
        parts.append(
            f'<path d="M{left:g} {y:g}h{width:.5g}" stroke="currentColor" stroke-opacity="0.15"/>'
        )
        parts.append(_text(left - 6, y + 3.5, f"{level * highest:.2g}", anchor="end"))
    for place, (answer, chance) in enumerate(zip(shown, chances, strict=True)):
        tall = height * float(chance) / highest
        strong = 1.0 if interval[0] <= answer <= interval[1] else 0.35
        parts.append(
            f'<rect x="{left + step * (place + 0.09):.5g}" y="{top + height - tall:.5g}" '
            f'width="{0.82 * step:.4g}" height="{tall:.5g}" fill="{ACCENT}" '
            f'fill-opacity="{strong:g}"><title>{answer:g}: {chance:.2g}</title></rect>'
        )
    parts.append(
        f'<path d="M{left:g} {top + height:g}h{width:.5g}" stroke="currentColor" '
        'stroke-opacity="0.5"/>'
    )
    parts += _draw_release(shown, released, step, (left, top, height))
    parts += _label_columns(shown, width, left, top + height + 14)
    parts.append(_text(left + width / 2, top + height + 30, "true answer"))
    parts.append(
        f'<g transform="translate(12,{top + height / 2:g}) rotate(-90)">'
        + _text(0, 0, "probability")
        + "</g>"
    )
    return _figure(parts, (left + width + 12, top + height + 38), title, about)


def show_table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    title: str = "",
    strong: Sequence[Sequence[bool]] = (),
) -> str:
    """Write a table: first column to the left, others to the right, `strong` cells bold."""
    cell = "padding:4px 12px;border:0;white-space:nowrap;font-variant-numeric:tabular-nums"
    line = "border-bottom:1px solid color-mix(in srgb,currentColor 30%,transparent)"
    lines = []
    for place, row in enumerate(rows):
        cells = []
        for column, text in enumerate(row):
            bold = bool(strong) and strong[place][column]
            shown = f"<b>{escape(text)}</b>" if bold else escape(text)
            cells.append(f'<td style="{cell};text-align:{_side(column)}">{shown}</td>')
        lines.append(f'<tr style="background:none">{"".join(cells)}</tr>')
    names = "".join(
        f'<th style="{cell};{line};text-align:{_side(place)};font-weight:600;opacity:0.75">'
        f"{escape(name)}</th>"
        for place, name in enumerate(header)
    )
    caption = (
        '<caption style="caption-side:top;text-align:left;padding:4px 12px;color:inherit;'
        f'font-weight:600">{escape(title)}</caption>'
        if title
        else ""
    )
    return (
        f'<table style="border-collapse:collapse;border:0;margin:8px 0;font-size:13px;{FONT}">'
        f'{caption}<thead><tr style="background:none">{names}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table>"
    )


def _side(column: int) -> str:
    return "left" if column == 0 else "right"


def _figure(parts: Sequence[str], size: tuple[float, float], title: str, about: str) -> str:
    """An SVG of `parts` with its caption."""
    width, height = size
    below = f'<div style="opacity:0.75">{escape(about)}</div>' if about else ""
    return (
        f'<figure style="margin:8px 0;{FONT}">'
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(title)}" '
        f'width="{width:.5g}" height="{height:.5g}" viewBox="0 0 {width:.5g} {height:.5g}" '
        f'style="max-width:100%;height:auto;{FONT}" font-size="11">{"".join(parts)}</svg>'
        '<figcaption style="font-size:13px;line-height:1.5;text-align:left">'
        f"<b>{escape(title)}</b>{below}</figcaption></figure>"
    )


def _group_starts(size: int) -> Integers:
    """Where each of at most `MOST_CELLS` groups of adjacent indices starts."""
    groups = min(size, MOST_CELLS)
    return np.arange(groups) * size // groups


def _opacity(chance: Any, highest: float) -> Any:
    """Opacity of a cell; the exponent makes the tails visible."""
    return (chance / highest) ** 0.55


def _draw_cells(cells: Floats, highest: float, side: float, left: float, top: float) -> list[str]:
    """One path of squares for every shade."""
    shade = np.rint(SHADES * _opacity(cells, highest)).astype(int)
    square = f"h{side:g}v{side:g}h-{side:g}z"
    paths = []
    for level in range(1, SHADES + 1):
        places = np.argwhere(shade == level)
        if len(places):
            corners = (f"M{left + side * j:g} {top + side * i:g}{square}" for i, j in places)
            paths.append(
                f'<path fill="{ACCENT}" fill-opacity="{level / SHADES:g}" d="{"".join(corners)}"/>'
            )
    return paths


def _draw_numbers(cells: Floats, highest: float, side: float, left: float, top: float) -> list[str]:
    """The probability inside every cell of a small matrix."""
    if max(cells.shape) > MOST_NUMBERS:
        return []
    texts = []
    for (i, j), chance in np.ndenumerate(cells):
        colour = "#fff" if _opacity(chance, highest) > 0.7 else "currentColor"
        number = "1" if chance >= 0.995 else f"{chance:.2f}".removeprefix("0")
        number = "·" if chance < 0.005 else number
        texts.append(
            _text(left + side * (j + 0.5), top + side * (i + 0.5) + 4, number, fill=colour)
        )
    return texts


def _draw_scale(highest: float, x: float, top: float, height: float) -> list[str]:
    """The scale of colours from 0 to the highest probability."""
    steps = 24
    thick = height / steps
    bars = [
        f'<rect x="{x:g}" y="{top + thick * shade:.5g}" width="10" height="{thick + 0.3:.4g}" '
        f'fill="{ACCENT}" fill-opacity="{float(_opacity(1 - (shade + 0.5) / steps, 1.0)):.3g}"/>'
        for shade in range(steps)
    ]
    ends = [(top + 8, f"{highest:.2g}"), (top + height, "0")]
    return bars + [_text(x + 15, y, text, anchor="start") for y, text in ends]


def _draw_release(
    shown: Floats, released: float, step: float, frame: tuple[float, float, float]
) -> list[str]:
    """A triangle above the released value, if it lies in the part that is drawn."""
    left, top, height = frame
    if not shown[0] <= released <= shown[-1]:
        return []
    x = left + step * (float(np.interp(released, shown, np.arange(len(shown)))) + 0.5)
    anchor = "start" if x < left + step * len(shown) / 2 else "end"
    return [
        f'<path d="M{x - 5:.5g} {top - 12:g}h10l-5 8z" fill="{MARK}"/>',
        f'<path d="M{x:.5g} {top - 4:g}v{height + 4:g}" stroke="{MARK}" stroke-opacity="0.5" '
        'stroke-dasharray="3 3"/>',
        _text(x + (9 if anchor == "start" else -9), top - 4, "released", anchor=anchor, fill=MARK),
    ]


def _label_columns(labels: NDArray[Any], width: float, left: float, y: float) -> list[str]:
    """Labels of as many of the columns as have room side by side."""
    longest = max(len(f"{label:g}") for label in labels) * 7 + 8
    step = width / len(labels)
    return [
        _text(left + step * (index + 0.5), y, f"{labels[index]:g}")
        for index in _ticks(len(labels), int(width / longest))
    ]


def _label_rows(labels: NDArray[Any], height: float, x: float, top: float) -> list[str]:
    """Labels of as many of the rows as have room one below the other."""
    step = height / len(labels)
    return [
        _text(x, top + step * (index + 0.5) + 4, f"{labels[index]:g}", anchor="end")
        for index in _ticks(len(labels), int(height / 18))
    ]


def _ticks(count: int, room: int) -> range:
    """Evenly spaced indices below `count`, a round number apart, at most `room` of them."""
    room = max(1, min(room, 13))
    step = next(
        factor * 10**power
        for power in range(10)
        for factor in (1, 2, 5)
        if (count - 1) // (factor * 10**power) + 1 <= room
    )
    return range(0, count, step)


def _text(
    x: float, y: float, text: str, *, anchor: str = "middle", fill: str = "currentColor"
) -> str:
    return (
        f'<text x="{x:.5g}" y="{y:.5g}" text-anchor="{anchor}" fill="{fill}">{escape(text)}</text>'
    )
