"""Pictures of mechanisms and distributions: HTML for notebooks, and matplotlib figures.

Functions called ``show_`` write plain HTML and SVG without scripts, style sheets or ids. Text has
the colour of the page and cells are one colour of varying opacity, so that light and dark pages are
both readable. All text is escaped, and equal data gives equal bytes.

All others draw a figure without a window and save it as PNG, SVG or PDF by the file's ending.
Only this module imports matplotlib.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import chain, repeat, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallyveil.arrays import Floats, Integers
from tallyveil.errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ACCENT = "#7c5cd6"
"""Colour of cells and bars: dark enough on white, light enough on black."""

MARK = "#e0566b"
"""Colour of the mark at the released value."""

FONT = "font-family:system-ui,-apple-system,'Segoe UI',Roboto,sans-serif"
MOST_CELLS = 64
"""Most rows and columns of cells; larger matrices are drawn in groups."""

MOST_NUMBERS = 9
"""Up to this many rows and columns cells also show their probability."""

SHADES = 16
"""Distinct opacities of cells; cells of one shade are one SVG path."""

MOST_BARS = 120
"""Most bars drawn; further answers are omitted on both sides."""


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
    edge, top = 56.0, 8.0
    width, height = side * m, side * n
    highest = float(cells.max())
    parts = [
        f'<rect x="{edge:g}" y="{top:g}" width="{width:g}" height="{height:g}" fill="{ACCENT}" '
        'fill-opacity="0.04"/>',
        *_draw_cells(cells, highest, side, edge, top),
        *_draw_numbers(cells, highest, side, edge, top),
        *_label_columns(outputs, width, edge, top + height + 14),
        *_label_rows(inputs, height, edge - 6, top),
        _text(edge + width / 2, top + height + 30, "released answer"),
        _title_rows(14, top + height / 2, "true answer"),
        *_draw_scale(highest, edge + width + 18, top, min(height, 120.0)),
    ]
    groups = matrix.shape != cells.shape
    note = f"{n} × {m} groups of adjacent answers" if groups else ""
    size = (edge + width + 74, top + height + 38)
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
    edge, top, height = 52.0, 20.0, 150.0
    step = max(5.0, min(26.0, 480 / len(shown)))
    width = step * len(shown)
    below = top + height
    base = f'<path d="M{edge:g} {{:g}}h{width:.5g}" stroke="currentColor" stroke-opacity="{{}}"/>'
    parts = []
    for level in (0.5, 1.0):
        y = below - height * level
        number = _text(edge - 6, y + 3.5, f"{level * highest:.2g}", anchor="end")
        parts += [base.format(y, 0.15), number]
    for place, (answer, chance) in enumerate(zip(shown, chances, strict=True)):
        tall = height * float(chance) / highest
        strong = 1.0 if interval[0] <= answer <= interval[1] else 0.35
        parts.append(
            f'<rect x="{edge + step * (place + 0.09):.5g}" y="{below - tall:.5g}" '
            f'width="{0.82 * step:.4g}" height="{tall:.5g}" fill="{ACCENT}" '
            f'fill-opacity="{strong:g}"><title>{answer:g}: {chance:.2g}</title></rect>'
        )
    parts += [
        base.format(below, 0.5),
        *_draw_release(shown, released, step, (edge, top, height)),
        *_label_columns(shown, width, edge, below + 14),
        _text(edge + width / 2, below + 30, "true answer"),
        _title_rows(12, top + height / 2, "probability"),
    ]
    return _figure(parts, (edge + width + 12, below + 38), title, about)


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

    def write_row(cells: Iterable[str], mark: str, more: str = "") -> str:
        styles = (f"{cell}{more};text-align:{side}" for side in chain(["left"], repeat("right")))
        pairs = zip(cells, styles, strict=False)
        inside = "".join(f'<{mark} style="{style}">{text}</{mark}>' for text, style in pairs)
        return f'<tr style="background:none">{inside}</tr>'

    names = write_row(map(escape, header), "th", f";{line};font-weight:600;opacity:0.75")
    lines = []
    for row, bold in zip_longest(rows, strong, fillvalue=()):
        pairs = zip_longest(map(escape, row), bold)
        lines.append(write_row((f"<b>{text}</b>" if b else text for text, b in pairs), "td"))
    caption = (
        '<caption style="caption-side:top;text-align:left;padding:4px 12px;color:inherit;'
        f'font-weight:600">{escape(title)}</caption>'
        if title
        else ""
    )
    return (
        f'<table style="border-collapse:collapse;border:0;margin:8px 0;font-size:13px;{FONT}">'
        f"{caption}<thead>{names}</thead>"
        f"<tbody>{''.join(lines)}</tbody></table>"
    )


def _figure(parts: Sequence[str], size: tuple[float, float], title: str, about: str) -> str:
    """Return an SVG of `parts` with its caption."""
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
    """Return the start of each of at most `MOST_CELLS` groups of adjacent indices."""
    groups = min(size, MOST_CELLS)
    return np.arange(groups) * size // groups


def _opacity(chance: Any, highest: float) -> Any:
    """Return the opacity of a cell; the exponent makes the tails visible."""
    return (chance / highest) ** 0.55


def _draw_cells(cells: Floats, highest: float, side: float, edge: float, top: float) -> list[str]:
    """Draw one path of squares for every shade."""
    shade = np.rint(SHADES * _opacity(cells, highest)).astype(int)
    square = f"h{side:g}v{side:g}h-{side:g}z"
    paths = []
    for level in range(1, SHADES + 1):
        places = np.argwhere(shade == level)
        if len(places):
            corners = (f"M{edge + side * j:g} {top + side * i:g}{square}" for i, j in places)
            paths.append(
                f'<path fill="{ACCENT}" fill-opacity="{level / SHADES:g}" d="{"".join(corners)}"/>'
            )
    return paths


def _draw_numbers(cells: Floats, highest: float, side: float, edge: float, top: float) -> list[str]:
    """Write the probability into every cell of a small matrix."""
    if max(cells.shape) > MOST_NUMBERS:
        return []
    texts = []
    for (i, j), chance in np.ndenumerate(cells):
        colour = "#fff" if _opacity(chance, highest) > 0.7 else "currentColor"
        number = "·" if chance < 0.005 else f"{chance:.2f}".removeprefix("0").replace("1.00", "1")
        x, y = edge + side * (j + 0.5), top + side * (i + 0.5) + 4
        texts.append(_text(x, y, number, fill=colour))
    return texts


def _draw_scale(highest: float, x: float, top: float, height: float) -> list[str]:
    """Draw the scale of colours from 0 to the highest probability."""
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
    """Draw a triangle above the released value, if it lies in the visible part."""
    edge, top, height = frame
    if not shown[0] <= released <= shown[-1]:
        return []
    x = edge + step * (float(np.interp(released, shown, np.arange(len(shown)))) + 0.5)
    anchor = "start" if x < edge + step * len(shown) / 2 else "end"
    return [
        f'<path d="M{x - 5:.5g} {top - 12:g}h10l-5 8z" fill="{MARK}"/>',
        f'<path d="M{x:.5g} {top - 4:g}v{height + 4:g}" stroke="{MARK}" stroke-opacity="0.5" '
        'stroke-dasharray="3 3"/>',
        _text(x + (9 if anchor == "start" else -9), top - 4, "released", anchor=anchor, fill=MARK),
    ]


def _label_columns(labels: NDArray[Any], width: float, edge: float, y: float) -> list[str]:
    """Label as many columns as fit side by side."""
    longest = max(len(f"{label:g}") for label in labels) * 7 + 8
    step = width / len(labels)
    return [
        _text(edge + step * (index + 0.5), y, f"{labels[index]:g}")
        for index in _ticks(len(labels), int(width / longest))
    ]


def _label_rows(labels: NDArray[Any], height: float, x: float, top: float) -> list[str]:
    """Label as many rows as fit below each other."""
    step = height / len(labels)
    return [
        _text(x, top + step * (index + 0.5) + 4, f"{labels[index]:g}", anchor="end")
        for index in _ticks(len(labels), int(height / 18))
    ]


def _title_rows(x: float, y: float, text: str) -> str:
    return f'<g transform="translate({x:g},{y:g}) rotate(-90)">{_text(0, 0, text)}</g>'


def _ticks(count: int, room: int) -> range:
    """Return at most `room` evenly spaced indices below `count`, a round number apart."""
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


def new_figure(width: float = 6.0, height: float = 4.0) -> Figure:
    """Make an empty figure of the given size in inches."""
    try:
        from matplotlib.figure import Figure
    except ImportError as missing:
        raise MissingExtraError("matplotlib", "plots") from missing
    return Figure(figsize=(width, height), dpi=144, layout="constrained")


def save(figure: Figure, path: str | Path | None) -> Figure:
    """Write `figure` to `path` if there is one, and return it; equal data gives equal bytes."""
    if path is not None:
        from matplotlib import rc_context

        metadata: dict[str, Any] = {"Date": None} if str(path).endswith(".svg") else {}
        with rc_context({"svg.hashsalt": "tallyveil"}):  # else element ids differ every time
            figure.savefig(path, metadata=metadata)
    return figure


def heatmap(
    matrix: Floats,
    inputs: NDArray[Any],
    outputs: NDArray[Any],
    title: str,
    path: str | Path | None = None,
) -> Figure:
    """Draw probabilities as coloured cells, true answers down, released answers across.

    Up to nine answers they are also written as text.
    """
    n, m = matrix.shape
    figure = new_figure(1.6 + min(8.0, max(2.6, 0.42 * m)), 1.1 + min(8.0, max(2.2, 0.42 * n)))
    axes = figure.subplots()
    image = axes.imshow(matrix, cmap="magma_r", vmin=0.0, aspect="auto", interpolation="nearest")
    for ticks, labels, count in ((axes.set_xticks, outputs, m), (axes.set_yticks, inputs, n)):
        shown = np.unique(np.linspace(0, count - 1, min(count, 11)).round().astype(int))
        ticks(shown, [f"{labels[index]:g}" for index in shown])
    axes.set_xlabel("released answer")
    axes.set_ylabel("true answer")
    axes.set_title(title, fontsize=10)
    if max(n, m) <= 9:
        middle = matrix.max() / 2
        for i, j in np.ndindex(n, m):
            colour = "white" if matrix[i, j] > middle else "black"
            text = f"{matrix[i, j]:.2f}".lstrip("0") if matrix[i, j] < 1 else "1"
            axes.text(j, i, text, ha="center", va="center", fontsize=7, color=colour)
    figure.colorbar(image, ax=axes, label="probability", shrink=0.85)
    return save(figure, path)


def heatmaps(
    matrices: Sequence[Floats], titles: Sequence[str], path: str | Path | None = None
) -> Figure:
    """Draw several matrices side by side on one colour scale."""
    figure = new_figure(2.6 * len(matrices) + 0.8, 2.9)
    highest = max(float(matrix.max()) for matrix in matrices)
    panels = figure.subplots(1, len(matrices), squeeze=False)[0]
    for axes, matrix, title in zip(panels, matrices, titles, strict=True):
        image = axes.imshow(matrix, cmap="magma_r", vmin=0.0, vmax=highest)
        axes.set_title(title, fontsize=10)
        axes.set_xlabel("released")
    panels[0].set_ylabel("true")
    figure.colorbar(image, ax=panels, label="probability", shrink=0.8)
    return save(figure, path)


@dataclass(frozen=True)
class Curve:
    """One line, or one colour of bars.

    `error` holds half-lengths of error bars. `strong` draws a thicker line. Curves of one
    label have one colour in every panel.
    """

    label: str
    x: ArrayLike
    y: ArrayLike
    error: ArrayLike | None = None
    strong: bool = False


@dataclass(frozen=True)
class Panel:
    """One pair of axes: its curves, title and labels.

    `kind` is "line" or "bar"; `log` holds the axes on a logarithmic scale ("", "x", "y" or
    "xy"); `marks` are dotted vertical lines.
    """

    title: str
    curves: Sequence[Curve]
    x_label: str = ""
    y_label: str = ""
    kind: str = "line"
    log: str = ""
    marks: Sequence[float] = ()


def panels(parts: Sequence[Panel], path: str | Path | None = None, *, columns: int = 3) -> Figure:
    """Draw panels of lines or grouped bars in a grid, with one legend for all of them."""
    columns = min(columns, len(parts))
    rows = -(-len(parts) // columns)
    labels = list(dict.fromkeys(curve.label for part in parts for curve in part.curves))
    below = 0.26 * -(-len(labels) // (2 * columns)) + 0.15
    figure = new_figure(3.1 * columns + 0.4, 2.6 * rows + below)
    grid = figure.subplots(rows, columns, squeeze=False)
    for axes in grid.ravel()[len(parts) :]:
        axes.set_axis_off()
    handles: dict[str, Any] = {}
    for axes, part in zip(grid.ravel(), parts, strict=False):
        for curve in part.curves:
            handles.setdefault(curve.label, _draw_curve(axes, part, curve, labels))
        for mark in part.marks:
            axes.axvline(mark, color="grey", linewidth=0.8, linestyle=":")
        if "x" in part.log:
            axes.set_xscale("log")
        elif all((np.asarray(c.x, dtype=float) % 1 == 0).all() for c in part.curves):
            axes.xaxis.get_major_locator().set_params(integer=True)
        if "y" in part.log:
            axes.set_yscale("log")
        axes.set_title(part.title, fontsize=9)
        axes.set_xlabel(part.x_label, fontsize=8)
        axes.set_ylabel(part.y_label, fontsize=8)
        axes.tick_params(which="both", labelsize=7)
        axes.spines[["top", "right"]].set_visible(False)
    if len(labels) > 1:
        figure.legend(
            list(handles.values()),
            list(handles),
            loc="outside lower center",
            ncols=min(len(labels), 2 * columns),
            fontsize=7,
            frameon=False,
        )
    return save(figure, path)


def _draw_curve(axes: Any, part: Panel, curve: Curve, labels: Sequence[str]) -> Any:
    number = labels.index(curve.label)
    colour = f"C{number % 10}"
    if part.kind == "bar":
        names = [other.label for other in part.curves]
        step = min(np.diff(np.unique(np.asarray(curve.x, dtype=float))), default=1.0)
        width = 0.84 * step / len(names)
        shift = (names.index(curve.label) - (len(names) - 1) / 2) * width
        return axes.bar(np.asarray(curve.x) + shift, curve.y, width, color=colour, yerr=curve.error)
    return axes.errorbar(
        curve.x,
        curve.y,
        yerr=curve.error,
        color=colour,
        linestyle=("-", "--", "-.", ":")[number // 10 % 4] if not curve.strong else "-",
        marker="osv^D*Px<>"[number % 10],
        markersize=3.4 if curve.strong else 2.6,
        linewidth=2.2 if curve.strong else 1.1,
        elinewidth=0.7,
        capsize=1.5,
    )


def distribution_bars(
    answers: Floats,
    distribution: Floats,
    interval: tuple[float, float],
    released: float,
    *,
    title: str,
    path: str | Path | None = None,
) -> Figure:
    """Draw a distribution as bars, those in `interval` dark, with the released value marked.

    Only the part of the range that carries visible probability is drawn.
    """
    figure = new_figure(5.6, 2.8)
    from matplotlib.ticker import MaxNLocator

    axes = figure.subplots()
    inside = (answers >= interval[0]) & (answers <= interval[1])
    step = float(np.diff(answers).min())
    axes.bar(answers, distribution, 0.86 * step, color=np.where(inside, "#4b2e83", "#c9bfe0"))
    axes.axvline(released, color="#d1495b", linewidth=1.2, linestyle="--")
    shown = np.flatnonzero(distribution >= 2e-3 * distribution.max())
    low = min(answers[shown[0]], released, interval[0])
    high = max(answers[shown[-1]], released, interval[1])
    axes.set_xlim(low - step, high + step)
    top = 1.16 * float(distribution.max())
    axes.set_ylim(0, top)
    axes.annotate(
        "released",
        (released, top),
        xytext=(4, -2),
        textcoords="offset points",
        fontsize=7,
        color="#d1495b",
        va="top",
    )
    if (answers == np.rint(answers)).all():
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("true answer", fontsize=8)
    axes.set_ylabel("probability", fontsize=8)
    axes.tick_params(labelsize=7)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(title, fontsize=9)
    return save(figure, path)
