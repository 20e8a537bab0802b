// The verdict, line by line.
import { $, complain, findings, follow, make, onPress, pairs, post } from "./api.js";
import { onDrop } from "./bundle.js";
import { heatmap } from "./charts.js";

let job = null;
onPress($("cancel"), async () => { if (job) await post(`/jobs/${job}/cancel`); });

onDrop(async (bundle, name) => {
  $("result").hidden = true;
  $("busy").hidden = false;
  const message = $("dataset")?.value ? { dataset: $("dataset").value } : {};
  job = (await post(`/bundles/${bundle}/check`, message)).job;
  const ended = await follow(job, (now) => { $("stage").textContent = `${now.stage} …`; });
  $("busy").hidden = true;
  if (ended.state !== "done") throw new Error(ended.sentence);
  show(ended.result, name);
});

function show(result, name) {
  const parts = [
    make("h2", {}, name),
    make("p", { class: result.ok ? "good" : "bad", id: "verdict" }, `${result.ok ? "✓" : "✗"} ${result.verdict}`),
    findings(result.findings),
  ];
  if (result.facts) {
    const list = make("dl", { class: "summary" });
    pairs(list, Object.entries(result.facts));
    parts.push(list);
  }
  for (const [title, sentences] of [["The check shows", result.shown], ["No check can show", result.not_shown]]) {
    if (sentences?.length) parts.push(make("h3", {}, title), make("ul", {}, ...sentences.map((text) => make("li", {}, text))));
  }
  const maps = (result.matrices ?? []).map((one) => [one, make("figure", {})]);
  if (maps.length) parts.push(make("h3", {}, "Probabilities"), ...maps.map(([, figure]) => figure));
  $("result").replaceChildren(...parts);
  $("result").hidden = false;
  for (const [one, figure] of maps) {
    const realised = one.realised === null ? "infinite" : one.realised.toPrecision(6);
    const held = Object.entries(one.properties).filter(([, holds]) => holds).map(([name]) => name.replaceAll("_", " "));
    heatmap(figure, one, `${one.name}: darker cells are likelier. Framed: the two cells that distinguish neighbours best, realised epsilon ${realised}.${held.length ? ` Holds: ${held.join(", ")}.` : ""}`);
  }
  complain("");
  $("result").scrollIntoView({ block: "start" });
}
