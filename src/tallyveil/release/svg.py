"""Small charts as SVG text, from the standard library alone.

A report must open offline, print sharply, be the same bytes for the same data and not need a
plotting library to be installed. Each function takes arrays and returns one <svg> element.
"""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallyveil.arrays import Floats, Integers
from tallyveil.release.column import Histogram, round_counts

INK, SOFT, GRID = "#22303c", "#5f6f7c", "#e6eaed"
BLUE, HAZE, PALE, AMBER = "#2f6f9f", "#9dc0d9", "#cfe0ec", "#c7762b"
WIDEST_LINEAR = 150
"""Axes up to this count are linear, with a bar for every count; wider ones follow log(1 + x)."""

DOT = 2.5
"""Points that round to the same multiple of this many pixels are drawn once."""

MARK_WIDTH, MARK_HEIGHT, MARK_SIDE = 136, 28, 21
"""The size of a picture in a line of a table, and the room at both its sides."""

RAMP = np.array([[255, 255, 255], [214, 229, 239], [120, 172, 205], [47, 111, 159], [16, 44, 82]])


def nice_ticks(low: float, high: float, count: int = 6) -> list[float]:
    """About `count` round whole numbers between `low` and `high`.

    >>> nice_ticks(0, 40)
    [0.0, 10.0, 20.0, 30.0, 40.0]
    """
    low, high = min(low, high), max(low, high)
    raw = max(1.0, (high - low) / max(count - 1, 1))
    power = 10 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(step_number * step, 10) + 0.0 for step_number in range(first, last + 1)]


@dataclass(frozen=True)
class Chart:
    """A plot area inside a drawing of fixed size; an axis may follow log(1 + value)."""

    x_range: tuple[float, float]
    y_range: tuple[float, float]
    log_x: bool = False
    log_y: bool = False
    width: int = 640
    height: int = 300
    left: int = 58
    right: int = 34
    top: int = 14
    bottom: int = 46

    def x(self, value: float) -> float:
        """Where `value` lies across."""
        inner = self.width - self.left - self.right
        return self.left + inner * _place(value, self.x_range, self.log_x)

    def y(self, value: float) -> float:
        """Where `value` lies down."""
        inner = self.height - self.top - self.bottom
        return self.height - self.bottom - inner * _place(value, self.y_range, self.log_y)

    def frame(self, x_label: str, y_label: str, body: str, title: str) -> str:
        """The whole picture: grid, ticks, labels, and `body` on top."""
        parts = [
            f'<svg viewBox="0 0 {self.width} {self.height}" role="img" '
            f'aria-label="{escape(title)}" xmlns="http://www.w3.org/2000/svg">'
        ]
        for tick in _ticks(self.y_range, self.log_y, 6):
            y = self.y(tick)
            parts.append(
                f'<line x1="{self.left}" x2="{self.width - self.right}" y1="{y:.1f}" '
                f'y2="{y:.1f}" stroke="{GRID}"/>' + _text(self.left - 8, y + 4, _short(tick), "end")
            )
        base = self.height - self.bottom
        for tick in _ticks(self.x_range, self.log_x, 9):
            parts.append(_text(self.x(tick), base + 17, _short(tick), "middle"))
        parts.append(body)
        parts.append(
            f'<line x1="{self.left}" x2="{self.width - self.right}" y1="{base}" y2="{base}" '
            f'stroke="{SOFT}"/>'
        )
        middle = self.left + (self.width - self.left - self.right) / 2
        parts.append(_text(middle, self.height - 8, x_label, "middle", INK))
        down = self.top + (self.height - self.top - self.bottom) / 2
        parts.append(
            f'<text x="14" y="{down:.1f}" transform="rotate(-90 14 {down:.1f})" font-size="12" '
            f'fill="{INK}" text-anchor="middle">{y_label}</text></svg>'
        )
        return "".join(parts)

    def line(self, xs: ArrayLike, ys: ArrayLike, colour: str, dash: str = "") -> str:
        """A line through the points."""
        points = " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in _points(xs, ys))
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        return (
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.8"'
            f"{dashed}/>"
        )

    def band(self, xs: ArrayLike, low: ArrayLike, high: ArrayLike, colour: str) -> str:
        """The area between two step lines: each value holds from half before to half after."""
        sides = []
        for ys in (high, low):
            corners = [(x + half, y) for x, y in _points(xs, ys) for half in (-0.5, 0.5)]
            sides.append([f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in corners])
        return f'<polygon points="{" ".join(sides[0] + sides[1][::-1])}" fill="{colour}"/>'


def _place(value: float, limits: tuple[float, float], log: bool) -> float:
    """Where `value` lies between two limits, as a share of their distance."""
    low, high = (math.log1p(end) for end in limits) if log else limits
    return ((math.log1p(value) if log else value) - low) / ((high - low) or 1.0)


def _ticks(limits: tuple[float, float], log: bool, count: int) -> list[float]:
    if not log:
        return nice_ticks(*limits, count=count)
    high = max(limits)
    marks = [m * 10.0**e for e in range(13) for m in (1, 2, 5) if m * 10.0**e <= high]
    return [0.0, *(marks if len(marks) < count + 3 else marks[::3])]


def heatmap(matrix: Floats, inputs: Sequence[float], outputs: Sequence[float]) -> str:
    """The matrix as shades: true answers down, released answers across."""
    n, m = matrix.shape
    size = 400
    chart = Chart(
        (float(outputs[0]) - 0.5, float(outputs[-1]) + 0.5),
        (float(inputs[-1]) + 0.5, float(inputs[0]) - 0.5),
        width=size + 150,
        height=size + 60,
        right=92,
    )
    shade = np.sqrt(matrix / matrix.max())  # small probabilities stay visible
    picture = _png(_coloured(shade))
    inner_width = chart.width - chart.left - chart.right
    inner_height = chart.height - chart.top - chart.bottom
    body = (
        f'<image x="{chart.left}" y="{chart.top}" width="{inner_width}" height="{inner_height}" '
        f'preserveAspectRatio="none" style="image-rendering:pixelated" '
        f'href="data:image/png;base64,{picture}"/>'
        f'<rect x="{chart.left}" y="{chart.top}" width="{inner_width}" height="{inner_height}" '
        f'fill="none" stroke="{GRID}"/>'
    )
    body += _scale(chart, float(matrix.max()))
    title = f"Probability of each released count for each true count, {n} by {m}"
    return chart.frame("released count", "true count", body, title)


def _scale(chart: Chart, top: float) -> str:
    """The colour key at the right of a heatmap."""
    left, height = chart.width - chart.right + 18, 150
    ramp = _png(_coloured(np.linspace(1, 0, 64)[:, None]))
    text = _text(left, chart.top + 10, "probability", "start", INK)
    body = (
        f'<image x="{left}" y="{chart.top + 22}" width="14" height="{height}" '
        f'preserveAspectRatio="none" href="data:image/png;base64,{ramp}"/>'
    )
    for share in (1.0, 0.25, 0.0):
        y = chart.top + 22 + height * (1 - math.sqrt(share))
        body += _text(left + 20, y + 4, f"{top * share:.2g}", "start")
    return text + body


def error_chart(true: Integers, bias: ArrayLike, interval: Floats) -> str:
    """Error (released minus true) by true count: the interval as a band, the bias as a line."""
    low, high = interval[:, 0] - true, interval[:, 1] - true
    reach = max(1.0, float(np.abs([low.min(), high.max()]).max()))
    last = float(true[-1])
    limits = (-0.5, last + 0.5), (-1.08 * reach, 1.08 * reach)
    chart = Chart(*limits, log_x=last > WIDEST_LINEAR)
    body = chart.band(true, low, high, PALE)
    body += chart.line([true[0], true[-1]], [0, 0], SOFT, "3 4")
    body += chart.line(true, bias, AMBER)
    return chart.frame("true count", "released − true", body, "Bias and interval by true count")


@dataclass(frozen=True)
class Bars:
    """Rows by count, gathered into bins that fit on a page: [start, next start)."""

    starts: list[int]
    rows: list[int]

    @classmethod
    def of(cls, histogram: Histogram, largest: int) -> Bars:
        """One bar per count where the range is narrow, wider ones beyond 20 where it is not."""
        every = WIDEST_LINEAR if largest <= WIDEST_LINEAR else 20
        starts = round_counts(largest + 1, every)
        places = np.searchsorted(starts, histogram.counts, side="right") - 1
        rows = np.zeros(len(starts) - 1, dtype=np.int64)
        np.add.at(rows, places, histogram.rows)
        return cls(starts, rows.tolist())

    def chart(self, top: float) -> Chart:
        """An empty chart that these bars fit in."""
        last = self.starts[-1] - 1
        limits = (-0.6, last + 0.6), (0.0, 1.05 * (top or 1.0))
        return Chart(*limits, log_x=last > WIDEST_LINEAR)

    def draw(self, chart: Chart, style: str) -> str:
        """The bars that are not empty."""
        base, parts = chart.y(0), []
        for start, stop, rows in zip(self.starts, self.starts[1:], self.rows, strict=False):
            if rows:
                begin, right = chart.x(start - 0.4), chart.x(stop - 0.6)
                y = chart.y(rows)
                parts.append(
                    f'<rect x="{begin:.2f}" y="{y:.1f}" width="{max(0.6, right - begin):.2f}" '
                    f'height="{base - y:.1f}" {style}/>'
                )
        return "".join(parts)


def bar_chart(histogram: Histogram, spread: Sequence[float] | None, title: str) -> str:
    """Rows with each published count; `spread` draws a whisker of plus and minus that much.

    Where the range is wide, bars beyond 20 gather several counts and have no whiskers.
    """
    bars = Bars.of(histogram, histogram.largest)
    alone = {start for start, stop in zip(bars.starts, bars.starts[1:], strict=False)
             if stop == start + 1}  # fmt: skip
    reach = dict(zip(histogram.counts, spread or (), strict=False))
    pairs = zip(histogram.counts, histogram.rows, strict=True)
    whiskers = [(count, rows, reach.get(count, 0.0)) for count, rows in pairs if count in alone]
    top = max([*bars.rows, *(rows + more for _, rows, more in whiskers)])
    chart = bars.chart(float(top))
    body = bars.draw(chart, f'fill="{BLUE}"')
    for count, rows, more in whiskers:
        if more > 0:
            x, high, low = chart.x(count), chart.y(rows + more), chart.y(max(0.0, rows - more))
            body += (
                f'<line x1="{x:.2f}" x2="{x:.2f}" y1="{high:.1f}" y2="{low:.1f}" '
                f'stroke="{AMBER}" stroke-width="1.3"/>'
            )
    return chart.frame("released count", "rows", body, title)


def compare_chart(outlined: Histogram, filled: Histogram) -> str:
    """Two histograms: one as bars, the other as an outline around them."""
    largest = max(outlined.largest, filled.largest)
    frame, bars = Bars.of(outlined, largest), Bars.of(filled, largest)
    chart = bars.chart(float(max(*frame.rows, *bars.rows)))
    body = bars.draw(chart, f'fill="{PALE}"') + frame.draw(chart, f'fill="none" stroke="{INK}"')
    return chart.frame("count", "rows", body, "True and released distributions")


def interval_mark(low: float, value: float, high: float, limits: tuple[float, float]) -> str:
    """One line of a table: an interval as a bar and the estimate in it as a dot."""
    first, last = (_across(end, limits) for end in (low, high))
    middle = MARK_HEIGHT / 2
    body = "".join(_upright(_across(tick, limits), 0) for tick in _mark_ticks(limits))
    body += (
        f'<rect x="{first:.1f}" y="{middle - 2.5:g}" width="{max(1.0, last - first):.1f}" '
        f'height="5" rx="2.5" fill="{HAZE}"/>'
        f'<circle cx="{_across(value, limits):.1f}" cy="{middle:g}" r="2.6" fill="{BLUE}"/>'
    )
    return _mark(body)


def interval_axis(limits: tuple[float, float]) -> str:
    """The scale above such lines."""
    places = [(_across(tick, limits), _short(tick)) for tick in _mark_ticks(limits)]
    marks = (
        _upright(x, MARK_HEIGHT - 5) + _text(x, MARK_HEIGHT - 9, t, "middle") for x, t in places
    )
    return _mark("".join(marks))


def _mark(body: str) -> str:
    return (
        f'<svg viewBox="0 0 {MARK_WIDTH} {MARK_HEIGHT}" aria-hidden="true" '
        f'xmlns="http://www.w3.org/2000/svg">{body}</svg>'
    )


def _mark_ticks(limits: tuple[float, float]) -> list[float]:
    return nice_ticks(*limits, count=3 if max(map(abs, limits)) < 10**5 else 2)


def _across(value: float, limits: tuple[float, float]) -> float:
    """Where a value lies in a line of a table."""
    return MARK_SIDE + (MARK_WIDTH - 2 * MARK_SIDE) * _place(value, limits, log=False)


def _upright(x: float, top: float) -> str:
    """A line of the grid, down to the end of the picture."""
    ends = f'x1="{x:.1f}" x2="{x:.1f}" y1="{top:g}" y2="{MARK_HEIGHT}"'
    return f'<line {ends} stroke="{GRID}"/>'


def scatter(xs: ArrayLike, ys: ArrayLike, x_label: str, y_label: str, title: str) -> str:
    """Points with the diagonal; those that coincide are drawn once, darker where many do."""
    across, down = np.asarray(xs, dtype=float), np.asarray(ys, dtype=float)
    top = max(1.0, float(across.max()), float(down.max()))
    wide = top > WIDEST_LINEAR
    chart = Chart((0.0, top), (0.0, top), wide, wide, width=480, height=440)
    pairs, rows = np.unique(np.column_stack([across, down]), axis=0, return_counts=True)
    dots: dict[tuple[int, int], int] = {}
    for (x, y), times in zip(pairs.tolist(), rows.tolist(), strict=True):
        spot = round(chart.x(x) / DOT), round(chart.y(y) / DOT)
        dots[spot] = dots.get(spot, 0) + times
    most = math.log1p(max(dots.values()))
    body = chart.line([0, top], [0, top], SOFT, "3 4")
    body += "".join(
        f'<circle cx="{x * DOT:g}" cy="{y * DOT:g}" r="2.6" fill="{BLUE}" '
        f'fill-opacity="{0.25 + 0.75 * math.log1p(times) / most:.2f}"/>'
        for (x, y), times in dots.items()
    )
    return chart.frame(x_label, y_label, body, title)


def _points(xs: ArrayLike, ys: ArrayLike) -> list[tuple[float, float]]:
    across, down = np.asarray(xs, dtype=float), np.asarray(ys, dtype=float)
    return list(zip(across.tolist(), down.tolist(), strict=True))


def _text(x: float, y: float, text: str, anchor: str, colour: str = SOFT) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="12" fill="{colour}" '
        f'text-anchor="{anchor}">{text}</text>'
    )


def _short(value: float) -> str:
    return f"{value:,.10g}".replace("-", "−")


def _coloured(share: Floats) -> NDArray[np.uint8]:
    """Shares in [0, 1] as colours of the ramp, shape (rows, columns, 3)."""
    where = np.linspace(0, 1, len(RAMP))
    channels = [np.interp(share, where, RAMP[:, channel]) for channel in range(3)]
    return np.stack(channels, axis=-1).round().astype(np.uint8)


def _png(pixels: NDArray[np.uint8]) -> str:
    """The pixels as a base64 PNG: 8-bit RGB, no filter, nothing but the required chunks."""
    height, width, _ = pixels.shape
    lines = b"".join(b"\0" + row.tobytes() for row in pixels)

    def chunk(name: bytes, content: bytes) -> bytes:
        check = zlib.crc32(name + content)
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", check)

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body: Any = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header)
    body += chunk(b"IDAT", zlib.compress(lines, 9)) + chunk(b"IEND", b"")
    return base64.b64encode(body).decode()
