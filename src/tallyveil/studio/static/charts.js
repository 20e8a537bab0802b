// Charts drawn with D3, which comes in the package XStatic-D3. Each has words for those who do not
// see it: a caption, and a line that says what the pointer or the arrow keys are at.
const { d3 } = globalThis;

const EDGE = { left: 56, right: 16, top: 14, bottom: 46 };
const HINT = "Point at the picture, or use the arrow keys.";
const short = (value) => d3.format(Math.abs(value) >= 10000 ? "s" : ",")(value);
const near = (value) => value.toLocaleString("en", { maximumSignificantDigits: 3 });

// As wide as its place, so that letters keep their size on a phone.
const widthOf = (figure) => figure.clientWidth || 640;
const roomOf = (figure) => Math.min(Math.max(widthOf(figure), 280), 860);

// Charts are drawn anew when their place becomes narrower or wider, or the colours change.
const drawn = new Map();
function redraw() {
  for (const [figure, { again, room }] of drawn) {
    if (!figure.isConnected) drawn.delete(figure);
    else if (room === null || Math.abs(room - widthOf(figure)) > 8) again();
  }
}
let later = 0;
addEventListener("resize", () => { clearTimeout(later); later = setTimeout(redraw, 80); });
for (const media of ["(prefers-color-scheme: dark)", "print"]) matchMedia(media).addEventListener("change", () => {
  for (const one of drawn.values()) if (one.coloured) one.room = null;
  redraw();
});
const remember = (figure, again, coloured = false) => drawn.set(figure, { again, coloured, room: widthOf(figure) });

// An empty picture in its figure, with the caption and the line below it.
function begin(figure, caption, width, height) {
  const held = figure.contains(document.activeElement);
  figure.replaceChildren();
  const svg = d3.select(figure).append("svg").attr({ viewBox: `0 0 ${width} ${height}`, width, role: "application", tabindex: 0, "aria-label": `${caption} Arrow keys move in it.` });
  d3.select(figure).append("figcaption").text(caption);
  const words = d3.select(figure).append("p").attr({ class: "readout", "aria-live": "polite" }).text(HINT);
  if (held) svg.node().focus(); // a slider may redraw what the keyboard is in
  return { svg, words };
}

function title(svg, text, x, y, turned = false) {
  svg.append("text").attr({ class: "title", "text-anchor": "middle", transform: `translate(${x} ${y})${turned ? " rotate(-90)" : ""}` }).text(text);
}

function frame(figure, { x, y, xLabel, yLabel }, caption) {
  const width = roomOf(figure), height = Math.round(150 + width * 0.24), { left, right, top, bottom } = EDGE;
  const X = d3.scale.linear().domain(x).range([left, width - right]), Y = d3.scale.linear().domain(y).range([height - bottom, top]);
  const { svg, words } = begin(figure, caption, width, height);
  const across = d3.svg.axis().scale(Y).orient("left").ticks(6).tickSize(left + right - width, 0).tickPadding(8).tickFormat(short);
  const along = d3.svg.axis().scale(X).orient("bottom").tickValues(X.ticks(width < 420 ? 5 : 9).filter(Number.isInteger)).tickSize(4, 0).tickFormat(short);
  svg.append("g").attr({ class: "grid", transform: `translate(${left} 0)` }).call(across);
  svg.append("g").attr({ class: "axis", transform: `translate(0 ${height - bottom})` }).call(along);
  title(svg, xLabel, (left + width - right) / 2, height - 8);
  title(svg, yLabel, 14, (top + height - bottom) / 2, true);
  return { svg, words, X, Y };
}

// Lets pointer and arrow keys walk along a chart; `tell` says what is at a place.
function walk({ svg, words, X, Y }, places, tell) {
  const rule = svg.append("line").attr({ class: "here", y1: Y.range()[0], y2: Y.range()[1], visibility: "hidden" });
  let at = -1;
  const show = (to) => {
    at = Math.min(Math.max(to, 0), places.length - 1);
    rule.attr({ x1: X(places[at]), x2: X(places[at]), visibility: "visible" });
    words.text(tell(at));
  };
  svg.on("pointermove", function () {
    const x = X.invert(d3.mouse(this)[0]), right = d3.bisectLeft(places, x);
    show(right > 0 && (right === places.length || x - places[right - 1] < places[right] - x) ? right - 1 : right);
  });
  svg.on("keydown", () => {
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowDown: -1, ArrowUp: 1 }[d3.event.key];
    if (step) { d3.event.preventDefault(); show(at + step); }
  });
}

// The band in which released counts lie, for every true count.
export function band(figure, { counts, low, high }, caption) {
  remember(figure, () => band(figure, { counts, low, high }, caption));
  const chart = frame(figure, { x: [0, counts.at(-1) || 1], y: [0, d3.max(high.concat(counts)) || 1], xLabel: "true count", yLabel: "released count" }, caption);
  const { svg, X, Y } = chart, x = (_, at) => X(counts[at]);
  svg.append("path").attr({ class: "fill", d: d3.svg.area().x(x).y0((_, at) => Y(low[at])).y1((_, at) => Y(high[at]))(counts) });
  svg.append("path").attr({ class: "line", d: d3.svg.line().x(x).y((count) => Y(count))(counts) });
  walk(chart, counts, (at) => `true ${counts[at]}: released ${low[at]} to ${high[at]}`);
}

// Bars for one histogram, outlines for another.
export function bars(figure, { before, after, from = 0, names = ["before", "after"], xLabel = "count", yLabel = "rows" }, caption) {
  remember(figure, () => bars(figure, { before, after, from, names, xLabel, yLabel }, caption));
  const size = before.length, places = d3.range(from, from + size);
  const chart = frame(figure, { x: [from - 0.5, from + size - 0.5], y: [0, d3.max(before.concat(after ?? [])) || 1], xLabel, yLabel }, caption);
  const { svg, X, Y } = chart, width = Math.max(X(1) - X(0) - (size > 60 ? 0.4 : 2), 0.8);
  const columns = (name, values) => svg.append("g").selectAll("rect").data(values ?? []).enter().append("rect")
    .attr({ class: name, width, x: (_, at) => X(from + at) - width / 2, y: (value) => Y(value), height: (value) => Math.max(Y(0) - Y(value), 0) });
  columns("bar", before);
  columns("ghost", after);
  walk(chart, places, (at) => `${xLabel} ${places[at]}: ${[before, after].filter(Boolean).map((values, k) => `${near(values[at])} ${names[k]}`).join(", ")}`);
}

export const STROKES = ["full", "dashed", "dotted", "dash-dotted"];
export function lines(figure, { x, series, names, xLabel, yLabel }, caption) {
  remember(figure, () => lines(figure, { x, series, names, xLabel, yLabel }, caption));
  const all = series.flat(), low = Math.min(0, d3.min(all));
  const chart = frame(figure, { x: d3.extent(x), y: [low, Math.max(d3.max(all), low + 1e-9)], xLabel, yLabel }, caption);
  const { svg, X, Y } = chart, path = d3.svg.line().x((_, at) => X(x[at])).y((value) => Y(value));
  series.forEach((values, at) => svg.append("path").attr({ class: `line ${["", "second", "third", "fourth"][at % 4]}`, d: path(values) }));
  walk(chart, x, (at) => `${xLabel} ${x[at]}: ${series.map((values, k) => `${names[k]} ${near(values[at])}`).join(", ")}`);
}

// A matrix as cells on a canvas, through a palette of 256 shades; equal steps of the root of the chance.
function paint(matrix, top) {
  const style = getComputedStyle(document.documentElement), shades = d3.range(5).map((at) => style.getPropertyValue(`--heat-${at}`).trim());
  const ramp = d3.scale.linear().domain(d3.range(5).map((at) => at / 4)).range(shades), palette = d3.range(256).map((at) => d3.rgb(ramp(at / 255)));
  const share = d3.scale.sqrt().domain([0, top]).range([0, 255]);
  const canvas = document.createElement("canvas"), columns = matrix[0].length;
  canvas.width = columns;
  canvas.height = matrix.length;
  const context = canvas.getContext("2d"), picture = context.createImageData(columns, matrix.length);
  matrix.forEach((row, i) => row.forEach((value, j) => {
    const { r, g, b } = palette[Math.round(share(value))];
    picture.data.set([r, g, b, 255], 4 * (i * columns + j));
  }));
  context.putImageData(picture, 0, 0);
  return canvas.toDataURL();
}

const chance = (value) => `${value >= 1e-4 || value === 0 ? (100 * value).toFixed(value >= 0.01 ? 1 : 2) : (100 * value).toExponential(1)}%`;

// A mechanism: rows are true answers, columns released ones; the worst pair of cells is framed.
export function heatmap(figure, { matrix, inputs, outputs, worst = null }, caption, widest = 520) {
  remember(figure, () => heatmap(figure, { matrix, inputs, outputs, worst }, caption, widest), true);
  const rows = matrix.length, columns = matrix[0].length, left = 44, top = 4, bottom = 44;
  const size = Math.min(roomOf(figure) - left - 4, widest), tall = size * Math.min(rows / columns, 1.4);
  const { svg, words } = begin(figure, caption, left + size + 4, top + tall + bottom);
  const X = d3.scale.ordinal().domain(d3.range(columns)).rangeBands([left, left + size]), Y = d3.scale.ordinal().domain(d3.range(rows)).rangeBands([top, top + tall]);
  svg.attr("class", "map").append("image").attr({ class: "cells", x: left, y: top, width: size, height: tall, preserveAspectRatio: "none", href: paint(matrix, d3.max(matrix, (row) => d3.max(row))) });
  svg.append("rect").attr({ class: "border", x: left, y: top, width: size, height: tall });
  const some = (count) => d3.scale.linear().domain([0, count - 1]).ticks(7).filter(Number.isInteger);
  const axis = (scale, names) => d3.svg.axis().scale(scale).tickValues(some(names.length)).tickFormat((at) => short(names[at])).tickSize(4, 0);
  svg.append("g").attr({ class: "axis", transform: `translate(0 ${top + tall})` }).call(axis(X, outputs).orient("bottom"));
  svg.append("g").attr({ class: "axis", transform: `translate(${left} 0)` }).call(axis(Y, inputs).orient("left"));
  title(svg, "released", left + size / 2, top + tall + bottom - 6);
  title(svg, "true", 12, top + tall / 2, true);
  const box = (i, j) => ({ x: X(j), y: Y(i), width: X.rangeBand(), height: Y.rangeBand() });
  if (worst) for (const i of [worst.likelier, worst.rarer]) svg.append("rect").attr({ class: "mark worst", ...box(i, worst.output) });
  const here = svg.append("rect").attr({ class: "mark", visibility: "hidden" });
  let at = [0, 0];
  const show = (i, j) => {
    at = [Math.min(Math.max(i, 0), rows - 1), Math.min(Math.max(j, 0), columns - 1)];
    here.attr({ ...box(...at), visibility: "visible" });
    words.text(`true ${inputs[at[0]]}, released ${outputs[at[1]]}: ${chance(matrix[at[0]][at[1]])}`);
  };
  svg.on("pointermove", function () {
    const [x, y] = d3.mouse(this);
    show(Math.floor((y - top) / Y.rangeBand()), Math.floor((x - left) / X.rangeBand()));
  });
  svg.on("keydown", () => {
    const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[d3.event.key];
    if (move) { d3.event.preventDefault(); show(at[0] + move[0], at[1] + move[1]); }
  });
}
