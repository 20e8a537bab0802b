// Talking to the studio: JSON both ways, errors as one sentence in the page's own message.

export const $ = (id) => document.getElementById(id);

export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export function complain(sentence) {
  const message = $("message");
  if (!message) return;
  message.textContent = sentence ?? "";
  message.hidden = !sentence;
  if (sentence) message.scrollIntoView({ block: "nearest" });
}

async function read(answer) {
  const content = await answer.json().catch(() => ({ error: "The studio gave no answer. Is it still open?" }));
  if (!answer.ok) throw new Error(content.error ?? "That did not work.");
  return content;
}

export async function post(path, message = {}, signal = undefined, more = {}) {
  const headers = { "content-type": "application/json", accept: "application/json", ...more };
  const answer = await fetch(path, { method: "POST", headers, body: JSON.stringify(message), signal });
  return read(answer);
}

// Asks what may take a while: after a moment, its stages and a button to give it up are shown below `near`.
export async function ask(path, message, near, signal = undefined) {
  const aborter = new AbortController(), name = crypto.randomUUID().replaceAll("-", "");
  const stage = make("span", {}, "starting …"), cancel = make("button", { type: "button", class: "quiet" }, "Cancel");
  const line = make("p", { class: "waiting", role: "status" }, make("progress", { "aria-label": "under way" }), stage, cancel);
  let source = null, cancelled = false;
  signal?.addEventListener("abort", () => aborter.abort());
  cancel.addEventListener("click", () => { cancelled = true; aborter.abort(); });
  const late = setTimeout(() => {
    near.after(line);
    source = new EventSource(`/questions/${name}/events`);
    source.onmessage = (event) => { const now = JSON.parse(event.data).stage; if (now) stage.textContent = `${now} …`; };
  }, 250);
  try {
    return await post(path, message, aborter.signal, { "x-watch": name });
  } catch (problem) {
    throw cancelled ? new Error("Cancelled. Nothing was spent.") : problem;
  } finally {
    clearTimeout(late);
    source?.close();
    line.remove();
  }
}

// Sends a file; `tell` hears which share of it was sent.
export function put(path, file, name, more = {}, tell = () => {}) {
  return new Promise((done, fail) => {
    const line = new XMLHttpRequest(), lost = () => fail(new Error("The file could not be sent. Is the studio still open?"));
    line.open("PUT", path);
    for (const [key, value] of Object.entries({ "x-name": encodeURIComponent(name ?? file.name), accept: "application/json", ...more })) line.setRequestHeader(key, value);
    line.upload.addEventListener("progress", (event) => tell(event.loaded / (event.total || 1)));
    line.addEventListener("error", lost);
    line.addEventListener("abort", () => fail(new Error("Cancelled.")));
    line.addEventListener("load", () => read({ ok: line.status < 300, json: async () => JSON.parse(line.responseText) }).then(done, fail));
    line.send(file);
  });
}

// The choices in the fields of a form, as the library's options are called; empty ones are left out.
export function collect(form, skip = [], idle = () => false) {
  const chosen = {};
  for (const field of form.querySelectorAll("input[name], select[name], textarea[name]")) {
    const { name, dataset } = field;
    if (skip.includes(name) || idle(field)) continue;
    if (dataset.kind === "switch") { if (field.checked) chosen[name] = true; continue; }
    const text = field.value.trim();
    if (!text) continue;
    if (dataset.kind === "list") chosen[name] = text.split(dataset.separator || ",").map((part) => part.trim());
    else if (dataset.kind === "whole") {
      const value = Number(text);
      if (!Number.isInteger(value)) throw new Error(`“${field.closest("label").firstChild.textContent.trim()}” must be a whole number.`);
      chosen[name] = value;
    } else chosen[name] = text;
  }
  return chosen;
}

// Runs one press of a button: it cannot be pressed again meanwhile, and errors are shown.
export function onPress(button, work) {
  button?.addEventListener("click", async () => {
    if (button.disabled) return;
    button.disabled = true;
    complain("");
    try {
      await work(button);
    } catch (problem) {
      complain(problem.message);
    } finally {
      button.disabled = false;
    }
  });
}

// Calls `work` once things have been quiet for a moment; an answer that is overtaken is dropped.
export function settle(work, quiet = 60) {
  let timer = 0, running = null;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(async () => {
      running?.abort();
      const current = (running = new AbortController());
      try {
        await work(current.signal);
      } catch (problem) {
        if (!current.signal.aborted) complain(problem.message);
      }
    }, quiet);
  };
}

export function facts(list, pairs) {
  list.replaceChildren(...pairs.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, String(value)))));
}

export function pairs(list, entries) {
  list.replaceChildren(...entries.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));
}

export function table(header, rows, numbers = []) {
  const cell = (tag, at, text) => make(tag, { ...(numbers.includes(at) ? { class: "number" } : {}), ...(tag === "th" ? { scope: "col" } : {}) }, text);
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": header.join(", ") },
    make("table", {},
      make("thead", {}, make("tr", {}, ...header.map((text, at) => cell("th", at, text)))),
      make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map((text, at) => cell("td", at, text)))))));
}

export function findings(list) {
  return make("ul", { class: "findings" }, ...list.map((one) =>
    make("li", one.ok ? {} : { class: one.compared === false ? "skipped" : "fails" }, make("b", {}, one.ok ? "✓ ok" : one.compared === false ? "– not compared" : "✗ FAIL"), make("span", {}, `${one.check}: ${one.detail}`))));
}

export function follow(job, tell) {
  return new Promise((resolve) => {
    const source = new EventSource(`/jobs/${job}/events`);
    source.onmessage = (event) => {
      const state = JSON.parse(event.data);
      tell(state);
      if (state.state !== "running") { source.close(); resolve(state); }
    };
  });
}

export function copier(text, label) {
  const button = make("button", { type: "button", class: "quiet" }, label);
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  });
  return button;
}

export const number = (value, digits = 3) =>
  value === null || value === undefined ? "–" : Number(value).toLocaleString("en", { maximumSignificantDigits: digits });
export const percent = (value) => `${(100 * value).toLocaleString("en", { maximumSignificantDigits: 2 })}%`;
