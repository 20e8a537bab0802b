// The best mechanism for a question; pins stay in this page and nowhere else.
import { $, ask, complain, facts, make, number, onPress, percent, settle, table } from "./api.js";
import { heatmap, lines, STROKES } from "./charts.js";

const form = $("question"), slider = $("epsilon-slider"), pins = [];
let seen = null;
const epsilon = () => String(Number((10 ** slider.value).toPrecision(3)));

function read() {
  const kind = form.query.value, message = { query: kind, epsilon: epsilon(), loss: form.loss.value, prior: form.prior.value, worst_case: form.worst_case.checked };
  message.properties = [...form.querySelectorAll("[name=properties]:checked")].map((box) => box.value);
  for (const name of ["records", "lower", "upper"]) {
    const label = form[name].closest("label");
    if (!label.hidden) message[name] = Number.isInteger(Number(form[name].value)) && form[name].value.trim() ? Number(form[name].value) : form[name].value;
  }
  return message;
}

function show(found) {
  seen = found;
  complain("");
  heatmap($("map"), found, `${found.name}: darker cells are likelier. Framed: the two cells that distinguish neighbours best.`);
  facts($("facts"), [["expected loss", number(found.expected, 4)], ["worst loss", number(found.worst_loss, 4)], ["proved gap", found.gap < 1e-12 ? "0" : found.gap.toExponential(0)],
    ["truth released", percent(found.truth)], ["realised ε", found.realised === null ? "infinite" : number(found.realised, 5)]]);
  $("reason").textContent = `${found.reason} Proved: no mechanism with these properties has a loss below ${number(found.lower_bound, 6)}. Holds: ${Object.entries(found.properties).filter(([, holds]) => holds).map(([name]) => name.replaceAll("_", " ")).join(", ") || "no named property"}.`;
  lines($("bias"), { x: found.inputs, series: [found.rmse, found.bias], names: ["off by", "bias"], xLabel: "true answer", yLabel: "answers" }, "Full line: how far off on average (root mean square). Dashed: bias, the part that does not average out.");
}

const solve = settle(async (signal) => show(await ask("/design/solve", read(), $("busy"), signal)), 40);

function arrange() {
  for (const label of form.querySelectorAll("[data-for]")) label.hidden = !label.dataset.for.split(" ").includes(form.query.value);
  $("epsilon-shown").textContent = epsilon();
}
form.addEventListener("input", () => { arrange(); $("priced").replaceChildren(); $("saved").replaceChildren(); solve(); });
form.addEventListener("submit", (event) => event.preventDefault());
arrange();
solve();

onPress($("pin"), async () => {
  if (!seen) return;
  if (pins.length === 4) throw new Error("Four are pinned already: remove one first.");
  pins.push({ ...seen, epsilon: epsilon(), wanted: read().properties.map((name) => name.replaceAll("_", " ")) });
  compare();
});

function compare() {
  $("pinned").hidden = !pins.length;
  const maps = [];
  const cards = pins.map((one, at) => {
    const figure = make("figure", {}), away = make("button", { type: "button", class: "quiet" }, `Remove ${at + 1}`);
    maps.push(() => heatmap(figure, one, `${one.wanted.length ? `Properties: ${one.wanted.join(", ")}. ` : ""}ε ${one.epsilon}`, 260));
    away.addEventListener("click", () => { pins.splice(at, 1); compare(); });
    return make("article", { class: "card" }, make("h3", {}, `${at + 1}. ${one.name}`), figure, away);
  });
  const rows = pins.map((one, at) => [`${at + 1}. ${one.name}`, one.epsilon, number(one.expected, 4), number(one.worst_loss, 4), percent(one.truth), number(Math.max(...one.bias.map(Math.abs)))]);
  const both = make("figure", {});
  $("pins").replaceChildren(table(["mechanism", "epsilon", "expected loss", "worst loss", "truth released", "largest bias"], rows, [1, 2, 3, 4, 5]), both, make("div", { class: "cards" }, ...cards));
  for (const show of maps) show();
  if (pins.length > 1 && pins.every((one) => one.inputs.length === pins[0].inputs.length)) {
    lines(both, { x: pins[0].inputs, series: pins.map((one) => one.rmse), names: pins.map((_, at) => `mechanism ${at + 1}:`), xLabel: "true answer", yLabel: "root mean square error" }, `Errors by true answer: ${pins.map((_, at) => `${at + 1} ${STROKES[at]}`).join(", ")}.`);
  }
}

onPress($("prices"), async () => {
  const rows = (await ask("/design/prices", read(), $("actions"))).map((one) => [one.property.replaceAll("_", " ") || "none", number(one.loss, 5), one.price === null ? one.refused : `+ ${percent(one.price)}`]);
  $("priced").replaceChildren(table(["property alone", "loss", "price"], rows, [1, 2]));
});
// A browser may refuse a second download that nobody clicked: both stay here as links.
onPress($("save"), async () => {
  const links = Object.entries(await ask("/design/certify", read(), $("actions"))).map(([name, text]) =>
    make("a", { href: URL.createObjectURL(new Blob([text], { type: "application/json" })), download: name }, name));
  $("saved").replaceChildren("Proved in integers. Save: ", ...links.flatMap((link, at) => (at ? [" · ", link] : [link])));
  links[0].click();
});
onPress($("copy"), async (button) => {
  await navigator.clipboard.writeText(seen.python);
  button.textContent = "Copied";
});
