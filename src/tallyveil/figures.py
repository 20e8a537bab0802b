"""Figures: the only module that imports matplotlib.

Each function draws arrays that the caller already has, on a figure without a window, and saves
it where asked (PNG, SVG or PDF by the file's ending).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallyveil.arrays import Floats
from tallyveil.errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "Curve",
    "Panel",
    "distribution_bars",
    "heatmap",
    "heatmaps",
    "new_figure",
    "panels",
    "save",
]


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


def panels(
    parts: Sequence[Panel], path: str | Path | None = None, *, columns: int = 3, title: str = ""
) -> Figure:
    """Draw panels of lines or grouped bars in a grid, with one legend for all of them."""
    columns = min(columns, len(parts))
    rows = -(-len(parts) // columns)
    labels = list(dict.fromkeys(curve.label for part in parts for curve in part.curves))
    below = 0.26 * -(-len(labels) // (2 * columns)) + 0.15
    figure = new_figure(3.1 * columns + 0.4, 2.6 * rows + below + (0.3 if title else 0.0))
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
    if title:
        figure.suptitle(title, fontsize=10)
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
