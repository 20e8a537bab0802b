"""Pictures: the only module that imports matplotlib.

Each function draws arrays that the caller already has, on a figure that belongs to no
window system, and saves it where asked (PNG, SVG or PDF by the file's ending).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["heatmap", "heatmaps", "new_figure", "save"]

Floats = NDArray[np.float64]


def new_figure(width: float = 6.0, height: float = 4.0) -> Figure:
    """An empty figure in the house style."""
    try:
        from matplotlib.figure import Figure
    except ImportError as missing:
        raise MissingExtraError("matplotlib", "plots") from missing
    return Figure(figsize=(width, height), dpi=144, layout="constrained")


def save(figure: Figure, path: str | Path | None) -> Figure:
    """`figure`, written to `path` if there is one; the same data gives the same bytes."""
    if path is not None:
        metadata: dict[str, Any] = {"Date": None} if str(path).endswith(".svg") else {}
        figure.savefig(path, metadata=metadata)
    return figure


def heatmap(
    matrix: Floats,
    inputs: NDArray[Any],
    outputs: NDArray[Any],
    title: str,
    path: str | Path | None = None,
) -> Figure:
    """The matrix as coloured cells, true answers down, released answers across.

    Small matrices carry their probabilities as text.
    """
    n, m = matrix.shape
    figure = new_figure(1.6 + min(8.0, max(2.6, 0.42 * m)), 1.1 + min(8.0, max(2.2, 0.42 * n)))
    axes = figure.subplots()
    image = axes.imshow(matrix, cmap="magma_r", vmin=0.0, aspect="auto", interpolation="nearest")
    for ticks, labels, count in (
        (axes.set_xticks, outputs, m),
        (axes.set_yticks, inputs, n),
    ):
        shown = np.unique(np.linspace(0, count - 1, min(count, 11)).round().astype(int))
        ticks(shown, [f"{labels[at]:g}" for at in shown])
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
    """Several matrices side by side on one colour scale."""
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
