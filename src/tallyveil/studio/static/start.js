// The doors: the demo, a dropped file, a file of the folder.
import { $, ask, collect, complain, onPress, post, put } from "./api.js";

const go = (answer) => location.assign(answer.next);

onPress($("demo"), async () => go(await post("/tables/demo")));
for (const button of document.querySelectorAll("[data-table]")) onPress(button, async () => go(await ask("/tables/folder", { name: button.dataset.table, form: collect($("form")) }, button.closest("ul"))));

const drop = $("drop"), file = $("file");
async function send(given) {
  if (!given) return;
  complain("");
  const progress = $("progress"), stage = $("stage");
  const tell = (share) => {
    if (share < 1) progress.value = share;
    else progress.removeAttribute("value"); // sent; how long reading takes is not known
    stage.textContent = share < 1 ? `sending the file, ${Math.floor(100 * share)}%` : "reading the table …";
  };
  progress.hidden = false;
  file.disabled = true;
  try {
    go(await put("/tables", given, given.name, { "x-form": encodeURIComponent(JSON.stringify(collect($("form")))) }, tell));
  } catch (problem) {
    complain(problem.message);
    progress.hidden = true;
    stage.textContent = "";
    file.disabled = false;
    file.value = "";
  }
}
if (drop) {
  file.addEventListener("change", () => send(file.files[0]));
  if (file.files.length) send(file.files[0]); // chosen before this script was there
  for (const kind of ["dragover", "dragleave", "drop"]) drop.addEventListener(kind, (event) => {
    event.preventDefault();
    drop.classList.toggle("over", kind === "dragover");
    if (kind === "drop") send(event.dataTransfer.files[0]);
  });
}
