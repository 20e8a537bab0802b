// The doors: the demo, a dropped file, a file of the folder.
import { $, collect, complain, onPress, post, put } from "./api.js";

const go = (answer) => location.assign(answer.next);

onPress($("demo"), async () => go(await post("/tables/demo")));
for (const button of document.querySelectorAll("[data-table]")) onPress(button, async () => go(await post("/tables/folder", { name: button.dataset.table, form: collect($("form")) })));

const drop = $("drop"), file = $("file");
async function send(given) {
  if (!given) return;
  complain("");
  const progress = $("progress");
  progress.hidden = false;
  progress.removeAttribute("value");
  file.disabled = true;
  try {
    go(await put("/tables", given, given.name, { "x-form": encodeURIComponent(JSON.stringify(collect($("form")))) }));
  } catch (problem) {
    complain(problem.message);
    progress.hidden = true;
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
