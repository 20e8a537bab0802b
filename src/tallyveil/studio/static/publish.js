// The four steps of a release. Everything that counts is worked out by the studio's own library.
import { $, ask, collect, complain, copier, facts, findings, follow, make, number, onPress, pairs, post, put, settle, table } from "./api.js";
import { band, bars } from "./charts.js";

const draft = $("draft"), base = `/publish/${draft.dataset.id}`;
const steps = { table: stepTable, protect: stepProtect, accuracy: stepAccuracy, release: stepRelease };
onPress($("remove"), async () => location.assign((await post(`${base}/remove`)).next));
steps[draft.dataset.step]();

function stepTable() {
  onPress($("show"), async () => {
    const seen = await ask(`${base}/values`, {}, $("show").parentElement);
    $("values").replaceChildren(make("p", {}, "The first rows, for your eyes only."), table(seen.columns, seen.rows));
    $("values").hidden = false;
  });
  onPress($("again"), async () => location.assign((await ask(`${base}/read`, collect($("form")), $("again"))).next));
}

function stepProtect() {
  const form = $("choices");
  const kind = () => form.querySelector("[name=rows]:checked")?.value;
  const ticked = (name) => [...form.querySelectorAll(`[name="${name}"]:checked`)].map((box) => box.value);
  const show = () => {
    for (const part of form.querySelectorAll("[data-when]")) part.hidden = !part.dataset.when.split(" ").includes(kind());
    const counted = new Set(ticked("count"));
    for (const other of form.querySelectorAll("[data-other]")) other.hidden = counted.has(other.dataset.other);
  };
  const idle = (field) => { const part = field.closest("[data-when]"); return part && !part.dataset.when.split(" ").includes(kind()); };
  const chosen = () => {
    const people = kind() === "people", counted = ticked("count");
    const first = people ? { by: ticked("by") } : { count: counted, keep: ticked("keep").filter((name) => !counted.includes(name)) };
    return { ...first, ...collect(form, ["rows", "count", "keep", "by"], idle) };
  };
  const save = async () => { if (kind()) await post(`${base}/choices`, { choices: chosen(), replace: true }); };
  const keep = settle(save, 200);
  let warned = "";
  form.addEventListener("input", () => { show(); keep(); });
  form.addEventListener("submit", (event) => event.preventDefault());
  show();
  // Whichever way one walks on or back, what was typed stays.
  for (const link of document.querySelectorAll(".steps a, .walk a:not(#next)")) link.addEventListener("click", async (event) => {
    event.preventDefault();
    await save().catch(() => {});
    location.assign(link.href);
  });
  $("next").addEventListener("click", async (event) => {
    event.preventDefault();
    complain("");
    try {
      if (!kind()) throw new Error("Choose what one row is.");
      if (!ticked(kind() === "people" ? "by" : "count").length) throw new Error(kind() === "people" ? "Tick the columns to count records by." : "Tick the count columns.");
      await save();
    } catch (problem) {
      complain(problem.message);
      return;
    }
    try {
      await ask(`${base}/preview`, "fresh" in form.dataset ? { choices: { epsilon: ["1"] } } : {}, $("message"));
    } catch (problem) {
      if (warned !== problem.message) { // what cannot be mended here may be mended on the next page
        warned = problem.message;
        complain(`${problem.message} Press again to go on anyway.`);
        return;
      }
    }
    location.assign($("next").href);
  });
}

function stepAccuracy() {
  const slider = $("epsilon-slider"), box = $("epsilon"), within = $("within-slider");
  const values = () => box.value.split(",").map((part) => part.trim()).filter(Boolean);
  const properties = () => [...document.querySelectorAll("[name=properties]:checked")].map((tick) => tick.value);
  const chosen = () => ({ epsilon: values(), method: $("method").value, epsilons: $("levels").value.trim(), loss: $("loss").value === "absolute" ? "" : $("loss").value, properties: properties() });
  const message = (more = {}) => ({ choices: chosen(), confidence: Number($("confidence").value), ...more });
  let seen = null;
  const place = () => { const first = Number(values()[0]); if (first > 0) slider.value = Math.log10(first); };

  function show(found) {
    seen = found;
    complain("");
    if (seen.chosen) { box.value = seen.chosen; place(); }
    $("promise").textContent = seen.promise;
    $("warnings").replaceChildren(...seen.warnings.map((text) => make("p", { class: "warning" }, text)));
    const first = seen.columns.find((one) => one.name === $("column").value) ?? seen.columns[0];
    $("which-column").hidden = seen.columns.length < 2;
    $("column").replaceChildren(...seen.columns.map((one) => make("option", one === first ? { selected: "" } : {}, one.name)));
    const several = $("levels").value.trim() !== "";
    for (const part of [slider, box, $("method")]) part.disabled = several;
    $("why").textContent = first.why ? `${first.method}: ${first.why}` : first.method;
    const known = seen.within !== null;
    within.disabled = !known || several;
    $("within-shown").textContent = known ? seen.within : "?";
    $("within-hint").textContent = known ? (first.matched ? "For noisy counts, before they are adjusted to the distribution." : "For every true count.") : "No accuracy can be promised for this method, or without a largest count.";
    if (known) { within.max = Math.max(within.max, seen.within); within.value = seen.within; }
    facts($("facts"), [[`cost for one ${seen.unit}`, `ε ${number(seen.epsilon, 4)}`], ...seen.stages.map((stage) => [stage.name, `ε ${number(stage.epsilon, 4)}`])]);
    if (first.accuracy) {
      const { true_count: counts, interval_low: low, interval_high: high } = first.accuracy;
      band($("band"), { counts, low, high }, `${first.name}: at least 95% of the rows with a true count are released inside the band.${first.matched ? " Before counts are adjusted to the distribution." : ""}`);
    } else $("band").replaceChildren();
    $("sums").replaceChildren(...(first.sums?.length ? [make("p", {}, `Totals of ${first.name}, planned from the public labels of your table, before rounding:`),
      table(["level", "totals", "standard deviation", "95% within"], first.sums.map((one) => [one.level, one.sums.toLocaleString("en"), number(one.deviation), `± ${number(one.half_width)}`]), [1, 2, 3])] : []));
    showLeft(seen.leaves);
  }

  const planner = (path, more) => settle(async (signal) => {
    try {
      show(await ask(`${base}/${path}`, message(more()), $("busy"), signal));
    } catch (problem) {
      if (!signal.aborted) for (const id of ["promise", "facts", "band", "sums", "warnings"]) $(id).replaceChildren();
      throw problem;
    }
  });
  const plan = planner("preview", () => ({})), planWithin = planner("epsilon", () => ({ within: Number(within.value) }));
  slider.addEventListener("input", () => { box.value = Number((10 ** slider.value).toPrecision(3)); plan(); });
  box.addEventListener("input", () => { place(); plan(); });
  within.addEventListener("input", () => { $("within-shown").textContent = within.value; planWithin(); });
  $("confidence").addEventListener("input", plan);
  $("method").addEventListener("input", plan);
  $("own").addEventListener("input", (event) => { if (event.target !== $("mechanism")) plan(); });
  $("column").addEventListener("input", () => show(seen));
  $("mechanism").addEventListener("change", async () => {
    const [file] = $("mechanism").files;
    if (!file) return;
    try {
      await put(`${base}/mechanism`, file);
      $("mechanism-hint").textContent = `${file.name} was chosen.`;
      $("method").value = $("method").options[$("method").options.length - 1].value;
      plan();
    } catch (problem) {
      complain(problem.message);
    }
  });
  $("next").addEventListener("click", async (event) => { // saves what was typed last
    event.preventDefault();
    await post(`${base}/choices`, { choices: chosen() }).catch(() => {});
    location.assign($("next").href);
  });
  place();
  plan();

  onPress($("simulate"), async () => {
    const columns = await ask(`${base}/simulate`, message(), $("simulate").parentElement);
    const one = columns[which()];
    bars($("simulated"), { before: one.before, after: one.after, from: one.first, names: ["rows before", "rows after"] },
      `Invented counts in ${one.rows.toLocaleString("en")} rows, released ${one.runs} times. Bars: before. Outlines: after, on average.${one.beyond ? " The few rows with other counts are left out of the picture." : ""}`);
    $("errors").replaceChildren(listErrors(one));
  });
  onPress($("compare"), async () => {
    const seen = await ask(`${base}/methods`, message(), $("compare").parentElement);
    $("methods").replaceChildren(make("div", { class: "cards" }, ...seen.map((one) => make("article", { class: "card" },
      make("h3", {}, one.method), make("p", {}, one.good_for), make("p", { class: "hint" }, one.words),
      one.refused ? make("p", { class: "hint" }, `Not possible: ${one.refused}`)
        : make("p", {}, `Costs ε ${number(one.epsilon, 4)}.`),
      ...(one.refused ? [] : [listErrors(one.columns[which()])])))));
  });
}

// The column whose figures are shown, and how far off releases of invented counts were.
const which = () => Math.max($("column").selectedIndex, 0);
function listErrors(column) {
  const off = ({ mean, standard_error: error }) => `${number(mean)} ± ${number(error)}`;
  const sums = column.sums.map(({ name, sums: size, error }) => [size === 1 ? `the ${name}` : `a total by ${name} (${size.toLocaleString("en")} totals)`, off(error)]);
  return table(["average error (± standard error)", column.name], [["a count", off(column.error)], ["the distribution", off(column.distance)], ...sums], [1]);
}

// What the current plan would leave of each budget on top.
function showLeft(leaves) {
  for (const line of document.querySelectorAll("[data-account]")) {
    const words = leaves[line.dataset.account], after = line.querySelector(".after");
    after.textContent = words ? `→ this plan ${words}` : "";
    after.hidden = !words;
  }
}

function stepRelease() {
  const state = JSON.parse($("job").textContent), summary = $("summary");
  const STAGES = ["reading and checking the table", "reserving room", "debiting the ledger", "drawing", "packing", "checking the folder"];
  let job = null;

  function tell(now) {
    $("progress").hidden = now.state !== "running";
    $("before").hidden = now.state === "running" || now.state === "done";
    const at = STAGES.indexOf(now.stage);
    $("stages").replaceChildren(...STAGES.map((name, k) => make("li", k === at ? { class: "now" } : {}, k < at ? `${name} ✓` : name)));
    $("cancel").disabled = now.firm;
    if (now.firm) $("cancel-hint").textContent = "The ledger was debited: the release will be finished even if this page is closed.";
    if (now.state === "refused" || now.state === "cancelled") complain(now.sentence);
    if (now.state === "done") finish(now.result);
  }

  function finish(result) {
    $("after").replaceChildren(...[
      make("p", { class: result.ok ? "good" : "bad" }, result.ok ? "✓ This release checks." : "✗ This release does NOT check."),
      make("p", {}, "Written to ", make("b", {}, result.folder)),
      make("p", { class: "buttons" }, make("a", { class: "button", href: `${base}/zip`, download: "" }, "Download as zip"),
        make("a", { class: "button quiet", href: `${base}/page`, target: "_blank", rel: "noopener" }, "Methodology page"),
        result.report ? make("a", { class: "button quiet", href: `${base}/report`, target: "_blank", rel: "noopener" }, "Comparison with the true counts (confidential)") : null),
      result.levels.length ? make("p", {}, `${result.levels.length} levels, ε ${result.levels.map((one) => number(one, 4)).join(", ")}: give each level's folder to its readers.`) : null,
      ...result.remarks.map((text) => make("p", { class: "warning" }, text)),
      make("p", { class: "promise" }, result.promise),
      make("p", {}, result.entry ? `Paid by ${result.entry}, debited before the noise was drawn.` : "No ledger: other releases of this data are not tracked."),
      make("h2", { class: "small" }, "Checks"), findings(result.findings),
      make("h2", { class: "small" }, "The same on the command line"), make("pre", { tabindex: "0" }, result.command), copier(result.command, "Copy"),
      make("h2", { class: "small" }, "The same in Python"), make("pre", { tabindex: "0" }, result.python), copier(result.python, "Copy"),
      make("h2", { class: "small" }, "Another release?"), make("p", {}, "The costs of releases of the same data add up."),
    ].filter(Boolean));
    const again = make("button", { type: "button", class: "quiet" }, "Plan another release of this table");
    onPress(again, async () => location.assign((await post(`${base}/again`)).next));
    $("after").append(again);
    $("after").hidden = false;
    document.querySelector("h1").textContent = "Released";
    refreshBudget();
  }

  const watch = async (id) => { job = id; await follow(id, tell); };
  onPress($("cancel"), async () => { await post(`/jobs/${job}/cancel`); });
  onPress($("release"), async () => {
    const dataset = $("dataset");
    const started = await post(`${base}/release`, { request: summary.dataset.request, plan: summary.dataset.plan, report: $("report").checked, out: $("out").value.trim(), dataset: dataset ? dataset.value : null });
    await watch(started.job);
  });
  $("dataset")?.addEventListener("input", async () => {
    const answer = await post(`${base}/choices`, { dataset: $("dataset").value }).catch((problem) => complain(problem.message));
    if (answer) showLeft(answer.leaves);
  });
  if (state && state.state !== "cancelled") {
    tell(state);
    if (state.state === "running") watch(state.id);
  }
  if (!state || state.state !== "done") ask(`${base}/preview`, {}, $("promise")).then((seen) => {
    if (seen.plan !== summary.dataset.plan) { location.reload(); return; } // changed in another tab meanwhile
    $("promise").textContent = seen.promise;
    $("warnings").replaceChildren(...seen.warnings.map((text) => make("p", { class: "warning" }, text)));
    pairs(summary, [
      ...seen.choices,
      ["Cost", `epsilon ${seen.epsilon_exact} for one ${seen.unit}`],
      ...seen.stages.map((stage) => [stage.name, `epsilon ${number(stage.epsilon, 6)}`]),
      ...seen.columns.map((column) => [`Column ${column.name}`, `${column.method}${column.why ? ` (${column.why})` : ""}, ${column.upper === null ? "no upper bound" : `0 to ${column.upper}`}`]),
    ]);
    showLeft(seen.leaves);
  }).catch((problem) => complain(problem.message));
}

async function refreshBudget() {
  const answer = await fetch("/budget", { headers: { accept: "application/json" } });
  for (const account of (await answer.json()).accounts) {
    const line = document.querySelector(`[data-account="${CSS.escape(account.dataset)}"]`);
    if (!line) continue;
    line.querySelector("meter").value = account.share;
    line.querySelector("span").textContent = `ε ${account.left} of ${account.total} left`;
    line.querySelector(".after").hidden = true;
  }
}
