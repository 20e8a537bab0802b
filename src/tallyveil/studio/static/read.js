// What released numbers mean.
import { $, ask, complain, make, number, onPress, settle, table } from "./api.js";
import { onDrop } from "./bundle.js";
import { bars } from "./charts.js";

let base = null, columns = [];
const chosen = () => ({ column: $("column").value, confidence: Number($("confidence").value) });

onDrop(async (bundle, name) => {
  $("level").replaceChildren();
  await open(`/bundles/${bundle}`, name);
  $("opened").scrollIntoView({ block: "start" });
});

async function open(place, name) {
  const seen = await ask(`${place}/open`, { level: $("level").value }, $("message"));
  base = place;
  $("which-level").hidden = !seen.levels.length;
  if (!$("level").options.length) $("level").replaceChildren(...seen.levels.map((one) => make("option", {}, one)));
  columns = seen.columns;
  $("which").textContent = name;
  $("promise").textContent = seen.promise;
  $("column").replaceChildren(...columns.map((one) => make("option", {}, one.name)));
  $("by").replaceChildren(...seen.public.map((column) => make("label", { class: "choice" }, make("input", { type: "checkbox", name: "by", value: column }), make("span", {}, `by ${column}`))));
  $("totals").replaceChildren();
  $("opened").hidden = false;
  choose();
}
$("level").addEventListener("input", () => open(base, $("which").textContent).catch((problem) => complain(problem.message)));

function choose() {
  const column = columns.find((one) => one.name === $("column").value);
  $("words").textContent = column.words;
  $("cut").textContent = column.cut ? `Counts above ${column.upper.toLocaleString("en")} were top-coded: totals are those of the top-coded counts.` : "";
  const slider = $("released");
  slider.max = column.upper ?? column.largest;
  slider.value = Math.min(7, slider.max);
  interpret();
}

const interpret = settle(async (signal) => {
  const released = Number($("released").value);
  $("released-shown").textContent = released;
  try {
    const seen = await ask(`${base}/count`, { ...chosen(), released }, $("meaning"), signal);
    complain("");
    $("meaning").textContent = seen.words;
    const last = Math.max(seen.chances.findLastIndex((chance) => chance > 1e-4), 1);
    bars($("posterior"), { before: seen.chances.slice(0, last + 1).map((chance) => 100 * chance), names: ["%"], xLabel: "true count", yLabel: "percent" },
      `Probability of each true count given a released ${released}, if all were equally likely before.`);
  } catch (problem) {
    if (problem.name === "AbortError") throw problem;
    $("meaning").textContent = problem.message;
    $("posterior").replaceChildren();
  }
});
$("released").addEventListener("input", () => { $("released-shown").textContent = $("released").value; interpret(); });
$("column").addEventListener("input", choose);
$("confidence").addEventListener("input", interpret);

onPress($("add"), async () => {
  const by = [...document.querySelectorAll("[name=by]:checked")].map((box) => box.value);
  const seen = await ask(`${base}/totals`, { ...chosen(), by }, $("add").parentElement);
  const rows = seen.groups.map((one) => [one.group, one.value.toLocaleString("en", { maximumFractionDigits: one.error >= 3 ? 0 : 1 }), `${number(one.low, 7)} to ${number(one.high, 7)}`, number(one.error), String(one.rows)]);
  $("totals").replaceChildren(table(["group", "estimate", "interval", "standard error", "rows"], rows, [1, 2, 3, 4]),
    make("p", { class: "hint" }, seen.all > rows.length ? `The first ${rows.length} of ${seen.all} groups.` : ""));
});
