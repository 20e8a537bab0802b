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
    """List about `count` round whole numbers between `low` and `high`.

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
    pad_left: int = 58
    pad_right: int = 34
    pad_top: int = 14
    pad_bottom: int = 46

    @property
    def inside(self) -> tuple[int, int]:
        """Width and height of the plot area."""
        across = self.width - self.pad_left - self.pad_right
        return across, self.height - self.pad_top - self.pad_bottom

    def x(self, value: float) -> float:
        """Place `value` across."""
        return self.pad_left + self.inside[0] * _place(value, self.x_range, self.log_x)

    def y(self, value: float) -> float:
        """Place `value` down."""
        base = self.height - self.pad_bottom
        return base - self.inside[1] * _place(value, self.y_range, self.log_y)

    def frame(self, x_label: str, y_label: str, body: str, title: str) -> str:
        """Draw the whole picture: grid, ticks, labels, and `body` on top."""
        base = self.height - self.pad_bottom
        ends = {"x1": self.pad_left, "x2": self.width - self.pad_right}
        parts = []
        for tick in _ticks(self.y_range, self.log_y, 6):
            y = self.y(tick)
            parts.append(_tag("line", **ends, y1=f"{y:.1f}", y2=f"{y:.1f}", stroke=GRID))
            parts.append(_text(self.pad_left - 8, y + 4, _short(tick), "end"))
        for tick in _ticks(self.x_range, self.log_x, 9):
            parts.append(_text(self.x(tick), base + 17, _short(tick), "middle"))
        parts += [body, _tag("line", **ends, y1=base, y2=base, stroke=SOFT)]
        middle = self.pad_left + self.inside[0] / 2
        parts.append(_text(middle, self.height - 8, x_label, "middle", INK))
        down = self.pad_top + self.inside[1] / 2
        turned = f"rotate(-90 14 {down:.1f})"
        parts.append(_text(14, down, y_label, "middle", INK, transform=turned))
        return _draw(self.width, self.height, "".join(parts), role="img", aria_label=escape(title))

    def line(self, xs: ArrayLike, ys: ArrayLike, colour: str, dash: str = "") -> str:
        """Draw a line through the points."""
        points = " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in _points(xs, ys))
        style = {"stroke": colour, "stroke_width": 1.8, "stroke_dasharray": dash or "none"}
        return _tag("polyline", points=points, fill="none", **style)

    def band(self, xs: ArrayLike, low: ArrayLike, high: ArrayLike, colour: str) -> str:
        """Fill the area between two step lines: each value reaches half a count to both sides."""
        sides = []
        for ys in (high, low):
            corners = [(x + half, y) for x, y in _points(xs, ys) for half in (-0.5, 0.5)]
            sides.append([f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in corners])
        return _tag("polygon", points=" ".join(sides[0] + sides[1][::-1]), fill=colour)


def _tag(name: str, body: str = "", /, **attributes: Any) -> str:
    """Write an element; names of attributes have - where their keyword has _."""
    stated = "".join(f' {key.replace("_", "-")}="{value}"' for key, value in attributes.items())
    return f"<{name}{stated}>{body}</{name}>" if body else f"<{name}{stated}/>"


def _draw(width: int, height: int, body: str, **attributes: Any) -> str:
    """Write a whole picture."""
    size, space = {"viewBox": f"0 0 {width} {height}"}, {"xmlns": "http://www.w3.org/2000/svg"}
    return _tag("svg", body, **size, **attributes, **space)


def _place(value: float, limits: tuple[float, float], log: bool) -> float:
    """Place `value` between two limits, as a share of their distance."""
    low, high = (math.log1p(end) for end in limits) if log else limits
    return ((math.log1p(value) if log else value) - low) / ((high - low) or 1.0)


def _ticks(limits: tuple[float, float], log: bool, count: int) -> list[float]:
    if not log:
        return nice_ticks(*limits, count=count)
    high = max(limits)
    marks = [m * 10.0**e for e in range(13) for m in (1, 2, 5) if m * 10.0**e <= high]
    return [0.0, *(marks if len(marks) < count + 3 else marks[::3])]


def heatmap(matrix: Floats, inputs: Sequence[float], outputs: Sequence[float]) -> str:
    """Shade the matrix: true counts down, released counts across."""
    n, m = matrix.shape
    size = 400
    chart = Chart(
        (float(outputs[0]) - 0.5, float(outputs[-1]) + 0.5),
        (float(inputs[-1]) + 0.5, float(inputs[0]) - 0.5),
        width=size + 150,
        height=size + 60,
        pad_right=92,
    )
    width, height = chart.inside
    area = {"x": chart.pad_left, "y": chart.pad_top, "width": width, "height": height}
    shade = np.sqrt(matrix / matrix.max())  # small probabilities stay visible
    body = _image(_coloured(shade), **area, style="image-rendering:pixelated")
    body += _tag("rect", **area, fill="none", stroke=GRID) + _scale(chart, float(matrix.max()))
    title = f"Probability of each released count for each true count, {n} by {m}"
    return chart.frame("released count", "true count", body, title)


def _scale(chart: Chart, top: float) -> str:
    """Draw the colour key at the right of a heatmap."""
    x, y, height = chart.width - chart.pad_right + 18, chart.pad_top, 150
    body = _text(x, y + 10, "probability", "start", INK)
    ramp = _coloured(np.linspace(1, 0, 64)[:, None])
    body += _image(ramp, x=x, y=y + 22, width=14, height=height)
    for share in (1.0, 0.25, 0.0):
        down = y + 22 + height * (1 - math.sqrt(share))
        body += _text(x + 20, down + 4, f"{top * share:.2g}", "start")
    return body


def _image(pixels: NDArray[np.uint8], **attributes: Any) -> str:
    picture = f"data:image/png;base64,{_png(pixels)}"
    return _tag("image", **attributes, preserveAspectRatio="none", href=picture)


def error_chart(true: Integers, bias: ArrayLike, interval: Floats) -> str:
    """Chart released minus true by true count: the interval as a band, the bias as a line."""
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
        """Gather one bar per count in a narrow range, and wider ones beyond 20 in any other."""
        every = WIDEST_LINEAR if largest <= WIDEST_LINEAR else 20
        starts = round_counts(largest + 1, every)
        places = np.searchsorted(starts, histogram.counts, side="right") - 1
        rows = np.zeros(len(starts) - 1, dtype=np.int64)
        np.add.at(rows, places, histogram.rows)
        return cls(starts, rows.tolist())

    def chart(self, top: float) -> Chart:
        """Make an empty chart that these bars fit in."""
        last = self.starts[-1] - 1
        limits = (-0.6, last + 0.6), (0.0, 1.05 * (top or 1.0))
        return Chart(*limits, log_x=last > WIDEST_LINEAR)

    def draw(self, chart: Chart, **style: str) -> str:
        """Draw the bars that are not empty."""
        base, parts = chart.y(0), []
        for start, stop, rows in zip(self.starts, self.starts[1:], self.rows, strict=False):
            if rows:
                begin, right = chart.x(start - 0.4), chart.x(stop - 0.6)
                y = chart.y(rows)
                across = {"x": f"{begin:.2f}", "width": f"{max(0.6, right - begin):.2f}"}
                down = {"y": f"{y:.1f}", "height": f"{base - y:.1f}"}
                parts.append(_tag("rect", **across, **down, **style))
        return "".join(parts)


def bar_chart(histogram: Histogram, spread: Sequence[float] | None, title: str) -> str:
    """Chart the rows with each count; `spread` draws a whisker of plus and minus that much.

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
    body = bars.draw(chart, fill=BLUE)
    for count, rows, more in whiskers:
        if more > 0:
            x, high, low = chart.x(count), chart.y(rows + more), chart.y(max(0.0, rows - more))
            ends = {"x1": f"{x:.2f}", "x2": f"{x:.2f}", "y1": f"{high:.1f}", "y2": f"{low:.1f}"}
            body += _tag("line", **ends, stroke=AMBER, stroke_width=1.3)
    return chart.frame("released count", "rows", body, title)


def compare_chart(outlined: Histogram, filled: Histogram) -> str:
    """Chart two histograms: one as bars, the other as an outline around them."""
    largest = max(outlined.largest, filled.largest)
    frame, bars = Bars.of(outlined, largest), Bars.of(filled, largest)
    chart = bars.chart(float(max(*frame.rows, *bars.rows)))
    body = bars.draw(chart, fill=PALE) + frame.draw(chart, fill="none", stroke=INK)
    return chart.frame("count", "rows", body, "True and released distributions")


def interval_mark(low: float, value: float, high: float, limits: tuple[float, float]) -> str:
    """Draw one line of a table: an interval as a bar and the estimate in it as a dot."""
    first, last = (_across(end, limits) for end in (low, high))
    middle = MARK_HEIGHT / 2
    body = "".join(_upright(_across(tick, limits), 0) for tick in _mark_ticks(limits))
    size = {"width": f"{max(1.0, last - first):.1f}", "height": 5, "rx": 2.5}
    body += _tag("rect", x=f"{first:.1f}", y=f"{middle - 2.5:g}", **size, fill=HAZE)
    body += _tag("circle", cx=f"{_across(value, limits):.1f}", cy=f"{middle:g}", r=2.6, fill=BLUE)
    return _draw(MARK_WIDTH, MARK_HEIGHT, body, aria_hidden="true")


def interval_axis(limits: tuple[float, float]) -> str:
    """Draw the scale above such lines."""
    places = [(_across(tick, limits), _short(tick)) for tick in _mark_ticks(limits)]
    marks = (
        _upright(x, MARK_HEIGHT - 5) + _text(x, MARK_HEIGHT - 9, t, "middle") for x, t in places
    )
    return _draw(MARK_WIDTH, MARK_HEIGHT, "".join(marks), aria_hidden="true")


def _mark_ticks(limits: tuple[float, float]) -> list[float]:
    return nice_ticks(*limits, count=3 if max(map(abs, limits)) < 10**5 else 2)


def _across(value: float, limits: tuple[float, float]) -> float:
    """Place a value in a line of a table."""
    return MARK_SIDE + (MARK_WIDTH - 2 * MARK_SIDE) * _place(value, limits, log=False)


def _upright(x: float, top: float) -> str:
    """Draw a line of the grid, down to the end of the picture."""
    across = {"x1": f"{x:.1f}", "x2": f"{x:.1f}"}
    return _tag("line", **across, y1=f"{top:g}", y2=MARK_HEIGHT, stroke=GRID)


def scatter(xs: ArrayLike, ys: ArrayLike, x_label: str, y_label: str, title: str) -> str:
    """Plot points and the diagonal; points that coincide are drawn once, darker where many do."""
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
    for (x, y), times in dots.items():
        shade = f"{0.25 + 0.75 * math.log1p(times) / most:.2f}"
        place = {"cx": f"{x * DOT:g}", "cy": f"{y * DOT:g}", "r": 2.6}
        body += _tag("circle", **place, fill=BLUE, fill_opacity=shade)
    return chart.frame(x_label, y_label, body, title)


def _points(xs: ArrayLike, ys: ArrayLike) -> list[tuple[float, float]]:
    across, down = np.asarray(xs, dtype=float), np.asarray(ys, dtype=float)
    return list(zip(across.tolist(), down.tolist(), strict=True))


def _text(x: float, y: float, text: str, anchor: str, colour: str = SOFT, **attributes: Any) -> str:
    place = {"x": f"{x:.1f}", "y": f"{y:.1f}", "font_size": 12}
    return _tag("text", text, **place, fill=colour, text_anchor=anchor, **attributes)


def _short(value: float) -> str:
    return f"{value:,.10g}".replace("-", "−")


def _coloured(share: Floats) -> NDArray[np.uint8]:
    """Colour shares in [0, 1] by the ramp, shape (rows, columns, 3)."""
    where = np.linspace(0, 1, len(RAMP))
    channels = [np.interp(share, where, RAMP[:, channel]) for channel in range(3)]
    return np.stack(channels, axis=-1).round().astype(np.uint8)


def _png(pixels: NDArray[np.uint8]) -> str:
    """Encode pixels as a base64 PNG: 8-bit RGB, no filter, only the required chunks."""
    height, width, _ = pixels.shape
    lines = b"".join(b"\0" + row.tobytes() for row in pixels)

    def chunk(name: bytes, content: bytes) -> bytes:
        check = zlib.crc32(name + content)
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", check)

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body: Any = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header)
    body += chunk(b"IDAT", zlib.compress(lines, 9)) + chunk(b"IEND", b"")
    return base64.b64encode(body).decode()
