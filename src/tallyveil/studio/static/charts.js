// Small charts as SVG, with words for those who do not see them.

const SPACE = "http://www.w3.org/2000/svg";

export function draw(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SPACE, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

export function ticks(low, high, count = 6) {
  const raw = Math.max((high - low) / Math.max(count - 1, 1), 1e-12);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw * 0.999);
  const found = [];
  for (let at = Math.ceil(low / step - 1e-9); at <= high / step + 1e-9; at += 1) found.push(Number((at * step).toPrecision(12)));
  return found;
}

const short = (value) => Math.abs(value) >= 10000 ? `${value / 1000}k` : String(value);

// As wide as its place, so that letters keep their size on a phone.
const widthOf = (figure) => figure.clientWidth || figure.parentElement?.clientWidth || 640; // an empty figure has no width
const roomOf = (figure) => Math.min(Math.max(widthOf(figure), 280), 860);

function frame({ x, y, xLabel, yLabel, title, width, height = Math.round(150 + width * 0.24) }) {
  const left = 54, right = 16, top = 14, bottom = 46;
  const X = (value) => left + (width - left - right) * (value - x[0]) / (x[1] - x[0] || 1);
  const Y = (value) => height - bottom - (height - top - bottom) * (value - y[0]) / (y[1] - y[0] || 1);
  const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title });
  for (const tick of ticks(...y)) {
    svg.append(draw("line", { class: "grid", x1: left, x2: width - right, y1: Y(tick), y2: Y(tick) }),
      draw("text", { class: "label", x: left - 8, y: Y(tick) + 4, "text-anchor": "end" }, short(tick)));
  }
  for (const tick of ticks(...x, width < 420 ? 5 : 9)) if (Number.isInteger(tick)) svg.append(draw("text", { class: "label", x: X(tick), y: height - bottom + 17, "text-anchor": "middle" }, short(tick)));
  svg.append(draw("line", { class: "axis", x1: left, x2: width - right, y1: height - bottom, y2: height - bottom }),
    draw("text", { class: "title", x: (left + width - right) / 2, y: height - 8, "text-anchor": "middle" }, xLabel),
    draw("text", { class: "title", x: 14, y: (top + height - bottom) / 2, "text-anchor": "middle", transform: `rotate(-90 14 ${(top + height - bottom) / 2})` }, yLabel));
  return { svg, X, Y };
}

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
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { for (const one of drawn.values()) if (one.coloured) one.room = null; redraw(); });
const remember = (figure, again, coloured = false) => drawn.set(figure, { again, coloured, room: widthOf(figure) });

function put(figure, svg, caption) {
  const words = document.createElement("figcaption");
  words.textContent = caption;
  figure.replaceChildren(svg, words);
}

const path = (xs, ys) => xs.map((x, at) => `${at ? "L" : "M"}${x.toFixed(1)} ${ys[at].toFixed(1)}`).join("");

// The band in which released counts lie, for every true count.
export function band(figure, { counts, low, high }, caption, marked = null) {
  remember(figure, () => band(figure, { counts, low, high }, caption, marked));
  const top = Math.max(...high, counts.at(-1));
  const { svg, X, Y } = frame({ x: [0, counts.at(-1) || 1], y: [0, top || 1], xLabel: "true count", yLabel: "released count", title: caption, width: roomOf(figure) });
  const xs = counts.map(X);
  const upper = path(xs, high.map(Y));
  const lower = [...low].reverse().map((value, at) => `L${xs[xs.length - 1 - at].toFixed(1)} ${Y(value).toFixed(1)}`).join("");
  svg.append(draw("path", { class: "fill", d: `${upper}${lower}Z` }), draw("path", { class: "line", d: path(xs, counts.map(Y)) }));
  if (marked !== null) svg.append(draw("circle", { class: "mark", cx: X(marked), cy: Y(marked), r: 5 }));
  put(figure, svg, caption);
}

// Bars for one histogram, outlines for another.
export function bars(figure, { before, after, from = 0, names = ["before", "after"], xLabel = "count", yLabel = "rows" }, caption) {
  remember(figure, () => bars(figure, { before, after, from, names, xLabel, yLabel }, caption));
  const top = Math.max(...before, ...(after ?? [0])), size = before.length;
  const { svg, X, Y } = frame({ x: [from - 0.5, from + size - 0.5], y: [0, top || 1], xLabel, yLabel, title: caption, width: roomOf(figure) });
  const wide = Math.max(X(1) - X(0) - (size > 60 ? 0.4 : 2), 0.8);
  before.forEach((value, at) => {
    const bar = draw("rect", { class: "bar", x: X(from + at) - wide / 2, y: Y(value), width: wide, height: Math.max(Y(0) - Y(value), 0) });
    bar.append(draw("title", {}, `${from + at}: ${value.toLocaleString("en", { maximumSignificantDigits: 4 })} ${names[0]}`));
    svg.append(bar);
  });
  after?.forEach((value, at) => {
    const outline = draw("rect", { class: "ghost", x: X(from + at) - wide / 2, y: Y(value), width: wide, height: Math.max(Y(0) - Y(value), 0.5) });
    outline.append(draw("title", {}, `${from + at}: ${value.toLocaleString("en", { maximumSignificantDigits: 4 })} ${names[1]}`));
    svg.append(outline);
  });
  put(figure, svg, caption);
}

export const STROKES = ["full", "dashed", "dotted", "dash-dotted"];
export function lines(figure, { x, series, xLabel, yLabel }, caption) {
  remember(figure, () => lines(figure, { x, series, xLabel, yLabel }, caption));
  const all = series.flat(), low = Math.min(0, ...all), high = Math.max(...all, low + 1e-9);
  const { svg, X, Y } = frame({ x: [x[0], x.at(-1)], y: [low, high], xLabel, yLabel, title: caption, width: roomOf(figure) });
  series.forEach((values, at) => svg.append(draw("path", { class: ["line", "line second", "line third", "line fourth"][at % 4], d: path(x.map(X), values.map(Y)) })));
  put(figure, svg, caption);
}

const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const channels = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));

// A matrix as cells on a canvas; a pointer or the arrow keys ask what a cell says.
export function heatmap(figure, { matrix, inputs, outputs, worst = null }, caption, widest = 520) {
  remember(figure, () => heatmap(figure, { matrix, inputs, outputs, worst }, caption, widest), true);
  const size = Math.min(roomOf(figure) - 44, widest);
  const rows = matrix.length, columns = matrix[0].length, top = Math.max(...matrix.map((row) => Math.max(...row)));
  const ramp = [0, 1, 2, 3, 4].map((at) => channels(style(`--heat-${at}`)));
  const canvas = document.createElement("canvas");
  canvas.width = columns;
  canvas.height = rows;
  const context = canvas.getContext("2d"), picture = context.createImageData(columns, rows);
  matrix.forEach((row, i) => row.forEach((value, j) => {
    const share = 4 * Math.sqrt(value / top), low = Math.min(Math.floor(share), 3);
    for (let c = 0; c < 3; c += 1) picture.data[4 * (i * columns + j) + c] = ramp[low][c] + (ramp[low + 1][c] - ramp[low][c]) * (share - low);
    picture.data[4 * (i * columns + j) + 3] = 255;
  }));
  context.putImageData(picture, 0, 0);
  const left = 40, bottom = 40, tall = size * Math.min(rows / columns, 1.4);
  const svg = draw("svg", { viewBox: `0 0 ${left + size + 4} ${tall + bottom + 4}`, class: "map", width: left + size + 4, role: "application", tabindex: "0", "aria-label": `${caption} Arrow keys move from cell to cell.` });
  const X = (j) => left + size * j / columns, Y = (i) => 2 + tall * i / rows;
  svg.append(draw("image", { href: canvas.toDataURL(), x: left, y: 2, width: size, height: tall, preserveAspectRatio: "none", class: "cells" }),
    draw("rect", { x: left, y: 2, width: size, height: tall, fill: "none", class: "axis" }));
  for (const tick of ticks(0, columns - 1, 7)) if (Number.isInteger(tick)) svg.append(draw("text", { class: "label", x: X(tick + 0.5), y: tall + 18, "text-anchor": "middle" }, short(outputs[tick])));
  for (const tick of ticks(0, rows - 1, 7)) if (Number.isInteger(tick)) svg.append(draw("text", { class: "label", x: left - 6, y: Y(tick + 0.5) + 4, "text-anchor": "end" }, short(inputs[tick])));
  svg.append(draw("text", { class: "title", x: left + size / 2, y: tall + 36, "text-anchor": "middle" }, "released"),
    draw("text", { class: "title", x: 10, y: tall / 2, "text-anchor": "middle", transform: `rotate(-90 10 ${tall / 2})` }, "true"));
  const box = (i, j) => ({ x: X(j), y: Y(i), width: size / columns, height: tall / rows });
  if (worst) for (const i of [worst.likelier, worst.rarer]) svg.append(draw("rect", { class: "mark", ...box(i, worst.output) }));
  const here = draw("rect", { class: "mark", visibility: "hidden" });
  svg.append(here);
  const words = document.createElement("p");
  words.className = "readout";
  words.setAttribute("aria-live", "polite");
  words.textContent = "Point at a cell, or use the arrow keys.";
  let at = [0, 0];
  const show = (i, j) => {
    at = [Math.min(Math.max(i, 0), rows - 1), Math.min(Math.max(j, 0), columns - 1)];
    for (const [name, value] of Object.entries(box(...at))) here.setAttribute(name, value);
    here.setAttribute("visibility", "visible");
    const chance = 100 * matrix[at[0]][at[1]];
    words.textContent = `true ${inputs[at[0]]}, released ${outputs[at[1]]}: ${chance >= 0.01 || chance === 0 ? chance.toFixed(chance >= 1 ? 1 : 2) : chance.toExponential(1)} %`;
  };
  svg.addEventListener("pointermove", (event) => {
    const place = svg.getBoundingClientRect(), scale = (left + size + 4) / place.width;
    show(Math.floor(((event.clientY - place.top) * scale - 2) / tall * rows), Math.floor(((event.clientX - place.left) * scale - left) / size * columns));
  });
  svg.addEventListener("keydown", (event) => {
    const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (move) { event.preventDefault(); show(at[0] + move[0], at[1] + move[1]); }
  });
  put(figure, svg, caption);
  figure.append(words);
}
